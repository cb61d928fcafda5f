"""Draws an answer with its evidence: each group's reply, the counts, and what was outvoted.

Works on `RobustAnswer.to_dict()`, so that an answer read from a file is drawn like one that was just made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robustrag_integrations._util.words import (
    count_of,
    loss_in_words,
    radius_in_words,
    repeats_in_words,
    tiers_in_words,
)
from robustrag_integrations.drawing.elements import Element, h, table
from robustrag_integrations.drawing.evidence import counts_table, steps_table
from robustrag_integrations.drawing.text import one_line, visible

PASSAGE, RESPONSE = 1500, 800  # characters that are shown of each; a cut part says so
GROUPS = 100
_DISSENT, _KEYWORDS, _COUNTS, _STEPS, _STRIP = 10, 24, 20, 200, 40


def answer_parts(answer: Mapping[str, Any], passages: Sequence[Mapping[str, Any]] | None = None) -> tuple[Element, ...]:
    """Draw an answer, top to bottom: the text, the facts, the evidence, the groups.

    Args:
        answer: `RobustAnswer.to_dict()`.
        passages: those of the defence, in order: `text`, `source`, and `planted` where an attack is known.
    """
    answer = {**answer, "settings": known(answer["settings"]), "evidence": known(answer["evidence"])}
    parts: list[Element | None] = [
        _given(answer),
        facts(_facts(answer)),
        _claims(answer),
        _dissent(answer.get("dissent") or ()),
        warnings(answer["warnings"]),
        counts_table(answer["evidence"], len(answer["groups"]), _COUNTS),
        steps_table(answer["evidence"], _STEPS),
        _groups(answer, passages),
    ]
    return tuple(part for part in parts if part is not None)


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not null: a file may mark a value as unknown."""
    return {name: value for name, value in values.items() if value is not None}


def facts(pairs: Sequence[tuple[str, str]]) -> Element:
    """Draw names and values side by side."""
    return h("dl", *(h("div", h("dt", name), h("dd", value), cls="fact") for name, value in pairs), cls="facts")


def warnings(messages: Sequence[str]) -> Element | None:
    """Draw the warnings that weaken the guarantee; None without warnings."""
    if not messages:
        return None
    return h("ul", *(h("li", visible(m, 400)) for m in messages), cls="warnings")


def passages_of(answer: Mapping[str, Any], passages: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the passages of each group: by id if they have one, else in order, as groups are adjacent."""
    by_id = {p["id"]: p for p in passages if p.get("id") is not None}
    rest = iter(passages)
    found = []
    for group in answer["groups"]:
        ids = group["passage_ids"]
        if ids and len(by_id) == len(passages) and all(i in by_id for i in ids):
            found.append([by_id[i] for i in ids])
        else:
            found.append([p for _, p in zip(ids, rest, strict=False)])
    return found


def groups_strip(answer: Mapping[str, Any], passages: Sequence[Mapping[str, Any]]) -> Element:
    """Draw the groups in rank order at a glance: filled where it supports the answer, framed if planted."""
    statuses = [group["status"] for group in answer["groups"]]
    hits = [any(p.get("planted") for p in found) for found in passages_of(answer, passages)]
    cells = [
        h("i", cls=f"cell {status}{' hit' if hit else ''}")
        for status, hit in zip(statuses[:_STRIP], hits, strict=False)
    ]
    more = f" +{len(statuses) - len(cells)}" if len(statuses) > len(cells) else None
    said = [f"{count} {status}" for status, count in Counter(statuses).items()]
    planted = [f"group {i + 1} planted: {s}" for i, (s, hit) in enumerate(zip(statuses, hits, strict=True)) if hit]
    label = f"{count_of(len(statuses), 'group')}: {', '.join([*said, *planted[:5]])}"
    return h("span", *cells, more, cls="strip", role="img", aria_label=label)


def groups_legend(statuses: Sequence[str]) -> Element:
    """Explain the cells of `groups_strip`, one for each status that a group may have."""
    cells = [
        h("li", h("i", cls=f"cell {status}", aria_hidden="true"), f" {status.replace('_', ' ')}") for status in statuses
    ]
    planted = h("li", h("i", cls="cell differs hit", aria_hidden="true"), " with a planted passage")
    return h("ul", h("li", "Groups, best rank first:"), *cells, planted, cls="legend")


def _given(answer: Mapping[str, Any]) -> Element:
    text = visible(answer["text"], RESPONSE)
    note = h("span", "abstained", cls="tag quiet") if answer["abstained"] else None
    return h("p", h("span", text, cls="answer-text", dir="auto"), note, cls="given")


def _dissent(found: Sequence[Mapping[str, Any]]) -> Element | None:
    """Draw the answers that groups give in place of the shown one; None if there are none."""
    if not found:
        return None
    rows = [
        h(
            "li",
            h("span", visible(a["text"], 200), dir="auto"),
            h("span", f" {one_line(', '.join(a['origins']), 120)}, support {a['support']}{_standing(a)}", cls="note"),
        )
        for a in found[:_DISSENT]
    ]
    return h("div", h("p", "Other answers that groups give", cls="note"), h("ul", *rows))


def _claims(answer: Mapping[str, Any]) -> Element | None:
    """Draw the claims of a long answer or a list with their own radii, then those that too few groups make."""
    left_out = answer["evidence"].get("left_out") or ()
    rows = [*(answer.get("claims") or ()), *left_out[:_DISSENT]]
    if not rows:
        return None
    shown = [
        h(
            "tr",
            h("td", h("span", visible(claim["text"], 400), dir="auto")),
            h("td", str(claim["support"]), cls="number"),
            h("td", "left out" if claim["radius"] is None else str(claim["radius"]), cls="number"),
            h("td", one_line(", ".join(claim["origins"]), 200)),
        )
        for claim in rows
    ]
    caption = "Claims, each by its own count: replacing up to its radius leaves it in the answer"
    return table(("Claim", "Support", "Radius", "From"), shown, caption)


def _standing(dissent: Mapping[str, Any]) -> str:
    """Return the tier of other answers."""
    return f", {one_line(dissent['tier'], 60)}" if dissent.get("tier") else ""


def _facts(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    settings = ", ".join(
        f"{one_line(name, 40)} {one_line(_shown(value), 40)}"
        for name, value in answer["settings"].items()
        if isinstance(value, (str, int, float)) and name not in ("abstention", "extractor", "task")
    )
    evidence = answer["evidence"]
    pairs = [
        ("Radius", f"{answer['radius']}: {radius_in_words(answer['radius'], _whole(answer), _unit(answer))}"),
        *_tiers(answer),
        ("Defence", one_line(answer["defense"], 60) + (f" ({settings})" if settings else "")),
        ("Model calls", str(answer["model_calls"])),
        *_tokens(answer.get("spending") or {}),
    ]
    if "threshold" in evidence:
        why = f" ({one_line(str(evidence['rule']), 100)})" if "rule" in evidence else ""
        unit = "claim" if "left_out" in evidence else "keyword"
        kept = f"a {unit} is kept from {_shown(evidence['threshold'])} {_unit(answer)} on{why}"
        pairs.append(("Threshold", kept if evidence.get("answering", 1) else "no group answered"))
    if found := answer.get("determinism"):
        pairs.append(("Model", one_line(repeats_in_words(found["model"], found["why"]), 400)))
        if found["scope"] != "every_run":
            pairs.append(("Holds", one_line(found["promise"], 600)))
    return pairs


def _tiers(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return how many groups of each tier can be replaced; nothing without tiers, which reports of rows may lack."""
    radii = answer.get("radius_by_tier")
    if not radii:
        return []
    sizes = dict.fromkeys(radii, 0) | Counter(g["tier"] for g in answer["groups"] if g.get("tier"))
    return [("Tiers", f"can be replaced, all others untouched: {tiers_in_words(radii, sizes)}")]


def _unit(answer: Mapping[str, Any]) -> str:
    """Return the unit of the radius; reports of rows may lack it."""
    return str(answer.get("radius_unit", "groups"))


def _whole(answer: Mapping[str, Any]) -> int:
    """Return the number of all groups or votes, in the unit of the radius."""
    groups = answer["groups"]
    return sum(g.get("votes", 1) for g in groups) if _unit(answer) == "votes" else len(groups)


def _tokens(spending: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the tokens that calls reported, and the number of calls that did not."""
    told = spending.get("told") or {}
    names = {"prompt": "in", "cached": "of them cached", "completion": "out", "reasoning": "of them reasoning"}
    known = [f"{told[kind]:,} {name}" for kind, name in names.items() if isinstance(told.get(kind), int)]
    if not known:
        return []
    silent = spending.get("silent")
    return [("Tokens", ", ".join(known) + (f"; {count_of(silent, 'call')} did not tell" if silent else ""))]


def _groups(answer: Mapping[str, Any], passages: Sequence[Mapping[str, Any]] | None) -> Element | None:
    groups = answer["groups"][:GROUPS]
    if not groups:
        return None
    texts = passages_of(answer, passages) if passages is not None else [None] * len(answer["groups"])
    kept = set(answer["evidence"].get("retained", ()))
    rows = [_group(g, p, answer["margin_unit"], kept) for g, p in zip(groups, texts, strict=False)]
    left = len(answer["groups"]) - len(groups)
    caption = "One isolated prompt per group" + (f"; {left:,} more not shown" if left else "")
    return table(("Group", "Passages", "Verdict", "Isolated response"), rows, caption, "groups")


def _group(
    group: Mapping[str, Any],
    passages: Sequence[Mapping[str, Any]] | None,
    unit: str,
    kept: set[str],
) -> Element:
    planted = any(p.get("planted") for p in passages or ())
    cells = [
        h("th", str(group["index"] + 1), scope="row", cls="rank"),
        h("td", *_sources(group, passages), cls="sources"),
        h("td", *_verdict(group, unit, planted), cls="verdict"),
        h("td", *_said(group, kept), cls="said"),
    ]
    return h("tr", *cells, cls=f"is-{group['status']}{' is-planted' if planted else ''}")


def _sources(group: Mapping[str, Any], passages: Sequence[Mapping[str, Any]] | None) -> Iterator[Element]:
    if passages is None:
        names = group["origins"] or group["passage_ids"]
        yield h("span", one_line(", ".join(names), 120), dir="auto", cls="source")
        return
    for passage in passages:
        yield _passage(passage)


def _passage(passage: Mapping[str, Any]) -> Element:
    """Draw a collapsed passage: its source and first words, with the whole text behind them."""
    text, size = passage["text"], len(passage["text"])
    head = h("span", one_line(passage.get("source") or "no source", 60), cls="source", dir="auto")
    mark = h("b", "planted", cls="tag planted") if passage.get("planted") else None
    cut = h("p", f"cut: {size:,} characters, the first {PASSAGE:,} are shown", cls="cut")
    return h(
        "details",
        h("summary", mark, head),
        h("pre", visible(text, PASSAGE) or "(empty)", cls="passage", dir="auto"),
        cut if size > PASSAGE else None,
        cls="passage-fold",
    )


def _verdict(group: Mapping[str, Any], unit: str, planted: bool) -> Iterator[Element]:
    status = group["status"]
    cell = h("i", cls=f"cell {status}{' hit' if planted else ''}", aria_hidden="true")
    yield h("span", cell, " ", status.replace("_", " "))
    if status == "differs" and group["margin"] is not None:
        yield h("span", loss_in_words(group["margin"], one_line(unit, 20)), cls="note")
    if group["truncated"]:
        yield h("span", "passages cut to fit the model", cls="note")


def _said(group: Mapping[str, Any], kept: set[str]) -> Iterator[Element]:
    if group["error"]:
        yield h("span", visible(group["error"], 300), cls="note")
    if note := group.get("note"):
        yield h("span", visible(note, 300), cls="note")
    if group["response"]:
        yield h("p", visible(group["response"], RESPONSE), cls="response", dir="auto")
        if len(group["response"]) > RESPONSE:
            yield h("p", f"cut: {len(group['response']):,} characters", cls="cut")
    elif not group["error"] and group["response"] is not None:
        yield h("span", "(nothing)", cls="note")
    if group["choice"] is not None:
        yield h("span", f"votes for option {group['choice'] + 1}", cls="note")
    if words := group["keywords"]:
        # Retained keywords come first, as the cut must not hide them.
        ranked = sorted(words, key=lambda w: (w not in kept, w))
        shown = [h("li", one_line(w, 60), cls="word kept" if w in kept else "word") for w in ranked[:_KEYWORDS]]
        more = len(words) - len(shown)
        yield h("ul", *shown, h("li", f"and {more} more", cls="note") if more else None, cls="words")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
