"""The questions: one line each, with every prompt, reply and count behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import STATUSES
from robustrag_integrations.drawing.answer import GROUPS, PASSAGE, RESPONSE, answer_parts, facts, passages_of
from robustrag_integrations.drawing.certificate import attacker_in_words, certificate_parts
from robustrag_integrations.drawing.elements import Child, Element, h
from robustrag_integrations.drawing.text import one_line, visible
from robustrag_integrations.evaluation.score.rows import attack_of_row

COLUMNS = ("Outcome", "Question and answer", "Setup", "Attack", "Groups", "Radius", "τ")
_STRIP = 40  # groups drawn in a line
GOOD_ENOUGH = 0.5  # the share of the full score from which an answer is listed as right
WORDS = {
    "correct": "right",
    "abstained": "abstained",
    "unscored": "not scored",
    "wrong": "wrong",
    "both": "right and hijacked",
    "hijacked": "hijacked",
    "failed": "failed",
}


def outcome(row: Mapping[str, Any]) -> str:
    """One of `WORDS`: a response that holds both answers is `both`, a refusal the attacker wanted is `hijacked`.

    Without an attack no answer is hijacked: one that is the attacker's by chance is merely wrong.
    """
    if row.get("error") is not None:
        return "failed"
    scores = row["scores"]
    if scores["hijacked"] and row["attack"]["name"] != "none":
        return "both" if scores["both"] else "hijacked"
    if scores["abstained"] and not scores["correct"]:
        return "abstained"
    if scores["correct"] is None:
        return "unscored"
    return "correct" if scores["correct"] >= GOOD_ENOUGH else "wrong"


def attack_label(row: Mapping[str, Any]) -> str:
    """The attack of a row, as the tables name it."""
    attack = attack_of_row(row)
    return "no attack" if attack.name == "none" else one_line(str(attack), 100)


def list_line(row: Mapping[str, Any]) -> Element:
    """A row of the list."""
    answer = _answer(row)
    became = outcome(row)
    return h(
        "tr",
        h("td", h("span", h("i", cls=f"dot {became}", aria_hidden="true"), WORDS[became]), cls="outcome"),
        h("td", *_exchange(row), cls="exchange"),
        h("td", one_line(row["setup"], 80), cls="setup"),
        h("td", attack_label(row), cls="attack"),
        h("td", strip(row) if answer else None, cls="strip-cell"),
        h("td", str(answer["radius"]) if answer else "–", cls="number radius"),
        h("td", *_taus(row), cls="number tau"),
        cls="line",
    )


def details(row: Mapping[str, Any]) -> Element:
    """The details of a line."""
    answer = _answer(row)
    parts: list[Child | None] = [facts(_task(row)), _failure(row)]
    if answer:
        parts += [h("h3", "Answer"), *answer_parts(answer, row["passages"])]
    else:
        parts += _passages(row)
    for found in row.get("certificates") or ():
        parts += [h("h3", f"Certificate: {attacker_in_words(found)}"), *certificate_parts(found)]
    return h("div", *parts, cls="drill")


def strip(row: Mapping[str, Any]) -> Element:
    """The groups in rank order at a glance: a cell each, filled where it supports the answer, flagged where planted."""
    answer = row["answer"]
    groups = answer["groups"]
    hits = [any(p.get("planted") for p in found) for found in passages_of(answer, row["passages"])]
    cells = [
        h("i", cls=f"cell {g['status']}{' hit' if hit else ''}") for g, hit in zip(groups[:_STRIP], hits, strict=False)
    ]
    more = len(groups) - len(cells)
    return h("span", *cells, f" +{more}" if more else None, cls="strip", role="img", aria_label=_in_words(groups, hits))


def _in_words(groups: Sequence[Mapping[str, Any]], hits: Sequence[bool]) -> str:
    statuses = [g["status"] for g in groups]
    said = [f"{statuses.count(s)} {s}" for s in dict.fromkeys(statuses)]
    planted = [f"group {i + 1} planted: {s}" for i, (s, hit) in enumerate(zip(statuses, hits, strict=True)) if hit]
    return f"{count_of(len(groups), 'group')}: {', '.join([*said, *planted[:5]])}"


def _answer(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The answer of a row that has one; a failed row's is not looked at."""
    return row["answer"] if row.get("error") is None else None


def _exchange(row: Mapping[str, Any]) -> Iterator[Element]:
    yield h("span", one_line(row["question"], 240), cls="question", dir="auto")
    answer = _answer(row)
    if answer:
        yield h("span", one_line(answer["text"], 160), cls="machine", dir="auto")
    elif row.get("error"):
        yield h("span", one_line(f"{row['error']['type']}: {row['error']['message']}", 160), cls="machine")


def _taus(row: Mapping[str, Any]) -> Iterator[Child]:
    found = row.get("certificates") or ()
    if not found:
        yield "–"
    for certificate in found:
        tau = f"{certificate['tau']:.2g}" if certificate["certified"] else "?"
        where = f"{attacker_in_words(certificate)}{'' if certificate['certified'] else ', not decided'}"
        yield h("span", tau, h("span", f" k′={certificate['corruption_size']}", cls="note"), title=where)


def legend() -> Element:
    """Explain the cells of the column "Groups"."""
    cells = [
        h("li", h("i", cls=f"cell {status}", aria_hidden="true"), f" {status.replace('_', ' ')}") for status in STATUSES
    ]
    planted = h("li", h("i", cls="cell differs hit", aria_hidden="true"), " with a planted passage")
    return h("ul", h("li", "Groups, best rank first:"), *cells, planted, cls="legend")


def _task(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("Question", visible(row["question"], RESPONSE)),
        ("Right answer", one_line(" | ".join(row["answers"]), 300) or "(not known)"),
    ]
    if wanted := row.get("target") or row.get("incorrect"):
        pairs.append(("Attacker wants", one_line(wanted, 200)))
    pairs += [
        ("Data set", f"{one_line(row['dataset'], 60)}, question {one_line(row['question_id'], 60)}"),
        ("Model", one_line(row["model"], 100)),
        ("Attack", attack_label(row)),
        *([("Metric", one_line(row["metric"], 100))] if row.get("metric") else []),
        ("Outcome", _scores(row)),
    ]
    return pairs


def _scores(row: Mapping[str, Any]) -> str:
    said = WORDS[outcome(row)]
    scores = row["scores"] if row.get("error") is None else {}
    if scores.get("correct") not in (None, 0, 1):
        said += f", score {scores['correct']:.3g}"
    if scores.get("judge") is not None:
        said += f", judge {scores['judge']:g} of 100"
    if scores.get("unreadable"):
        said += ", because no score could be read from the judge's replies"
    if scores.get("failure"):
        said += f", because the metric failed: {one_line(scores['failure'], 200)}"
    return said


def _failure(row: Mapping[str, Any]) -> Element | None:
    error = row.get("error")
    if not error:
        return None
    return h("ul", h("li", visible(f"{error['type']}: {error['message']}", 800)), cls="warnings")


def _passages(row: Mapping[str, Any]) -> list[Child | None]:
    """The passages alone, where no answer says which group they were in."""
    rows = [
        h("li", h("b", "planted ", cls="tag planted") if p.get("planted") else None, visible(p["text"], PASSAGE))
        for p in row["passages"][:GROUPS]
    ]
    return [h("h3", "Passages"), h("ol", *rows, cls="bare-passages")]
