"""Summary of a run's rows, a line per setup and attack: the paper's measures (section V, "Evaluation metrics").

Every rate comes with a 95% bootstrap interval and the number of questions behind it. Failed rows are in no rate; they
are counted and shown. Certified scores come from certificates that were decided; one that was not counts as 0, and what
was sampled for it stays apart as an estimate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from robustrag_integrations._util.words import repeats_in_words
from robustrag_integrations.evaluation.score.expected import ExpectedAccuracy, expected_accuracy
from robustrag_integrations.evaluation.score.intervals import EMPTY, RATE, SCORE, Interval, bootstrap_mean
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, AttackSpec, Row, attack_of_row, latest_rows
from robustrag_integrations.evaluation.score.schema import misfit_in_row

_Value = TypeVar("_Value")
_LONGEST = 400
_OWN = re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\d[\d.,]*")  # of a question: its names and numbers
_COSTS = ("model_calls", "rounds", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class CertifiedScore:
    """The score that certificates guarantee against one attacker.

    Attributes:
        attack: `injection` or `modification`.
        corruption_size: k'.
        score: the mean tau: cacc, or cllmj (0 to 100) for long answers. An undecided certificate counts as 0.
        guaranteed: number of certificates that are decided with a tau above 0.
        undecided: number of certificates that a limit cut short.
        estimate: the mean over undecided certificates of the lowest sampled score. It guarantees nothing.
    """

    attack: str
    corruption_size: int
    score: Interval
    guaranteed: int
    undecided: int
    estimate: Interval


@dataclass(frozen=True)
class Line:
    """One setup on one data set under one attack. Of long answers nothing is simply right: accuracy is then empty.

    Attributes:
        dataset: the data set's name.
        task: `qa`, `mc` or `long`.
        model: the model's name.
        setup: a label of defence and settings.
        defense: the defence's name.
        top_k: passages per question.
        attack: the attack.
        settings: the defence's settings.
        n: questions answered.
        failed: questions without an answer because something failed.
        errors: failures, and how often each occurred.
        accuracy: share of right answers: bacc without an attack, racc under one.
        judge: the judge's mean score: bllmj without an attack, rllmj under one. Empty without a judge.
        unreadable: number of scores that are 0 because the judge's replies held none, or because the metric failed.
        asr: share of answers that hold the attacker's. Without an attack: how often it was given anyway.
        both: share of answers that hold both.
        abstention: share of abstentions.
        told: share, of all answers, of abstentions that tell the right answer among three with most votes at most.
        radius: the mean radius of the right answers (of long ones: of those that do not abstain).
        radius_wrong: that of the answers that are wrong and no abstention.
        radius_abstained: that of the abstentions.
        held: share of answers that are right and have a radius of at least 1: what `min_radius=1` leaves.
        held_wrong: share of those that are wrong, no abstention, and have one.
        model_calls: mean number of model calls per question.
        rounds: mean number of times that an answer waited for replies.
        prompt_tokens: their mean number per question, over the questions of which all calls told; None where none did.
            Calls out of a cache of replies count as they did when the model was asked.
        cached_tokens: of the prompts, how many a server read from its cache; likewise.
        completion_tokens: likewise.
        reasoning_tokens: of the replies, how many were reasoning; likewise.
        with_tokens: number of questions that told the tokens of prompts and replies.
        seconds: mean time per question. Rows whose model calls came out of a cache took no time worth measuring, and
            the first row of each defence pays for loading what the others find loaded: both are left out here and in
            the ratio; None when no other is there.
        latency_ratio: time over that of vanilla RAG on the same questions, attack and model, with as many worked
            examples; None without any.
        certified: one entry per attacker that was certified against; clean rows only.
        metric: the metric's name; None for a judge, or where a file does not say.
        expected: expected certified accuracy: the share that is right with a radius of at least k', one per k'; clean
            rows only. It bounds the accuracy over the data set while any k' groups are replaced, also of a model that
            samples.
        repeats: the model's reproducibility, in words; empty where a file does not say.
        found: mean share of the right answers that stand in the answer or in what groups say otherwise, where none
            that is wrong does; over the questions with several right answers, empty without any.
        warnings: warnings of answers and certificates, each with its number of questions; of warnings that
            differ in numbers or names alone, the first stands for all.
    """

    dataset: str
    task: str
    model: str
    setup: str
    defense: str
    top_k: int | None
    attack: AttackSpec
    settings: Mapping[str, Any]
    n: int
    failed: int
    errors: Mapping[str, int]
    accuracy: Interval
    judge: Interval
    unreadable: int
    asr: Interval
    both: Interval
    abstention: Interval
    told: Interval
    radius: Interval
    radius_wrong: Interval
    radius_abstained: Interval
    held: Interval
    held_wrong: Interval
    model_calls: float | None
    rounds: float | None
    prompt_tokens: float | None
    cached_tokens: float | None
    completion_tokens: float | None
    reasoning_tokens: float | None
    with_tokens: int
    seconds: float | None
    latency_ratio: float | None
    certified: tuple[CertifiedScore, ...]
    metric: str | None
    expected: tuple[ExpectedAccuracy, ...]
    repeats: str
    found: Interval
    warnings: Mapping[str, int]

    @property
    def clean(self) -> bool:
        """True for the clean run."""
        return self.attack.name == "none"

    def certified_against(self, attack: str, size: int) -> CertifiedScore | None:
        """Return the score certified against this attacker; None where it was not certified."""
        return next((c for c in self.certified if (c.attack, c.corruption_size) == (attack, size)), None)


def summarise(rows: Iterable[Row]) -> tuple[Line, ...]:
    """Return one line per data set, task, model, setup, top_k and attack, in order of appearance.

    Args:
        rows: of a run, as read from its file; a header is passed over. Of rows with the same key the last one without
            an error counts, as in a run that was resumed.

    Raises:
        ValueError: a row has another schema, or lacks something; the message says which row and what.
    """
    kept = latest_rows(_checked(rows))
    groups: dict[tuple[Any, ...], list[Row]] = {}
    vanilla: dict[tuple[Any, ...], float | None] = {}  # its seconds
    for row in kept:
        about = (*_where(row), row["setup"], row["defense"], row.get("metric"))
        groups.setdefault(about, []).append(row)
        if row["defense"] == "vanilla" and row.get("error") is None:
            vanilla.setdefault(_asked(row), _seconds(row))
    return tuple(_line(group, vanilla) for group in groups.values())


def _checked(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows without headers; raise at the first that is not a row."""
    for number, row in enumerate(rows, 1):
        if isinstance(row, Mapping) and row.get("schema") == HEADER_SCHEMA:
            continue
        if problem := misfit_in_row(row):
            raise ValueError(f"row {number}: {problem}")
        yield row


def _where(row: Row) -> tuple[Any, ...]:
    return row["dataset"], row["task"], row["model"], row.get("top_k"), attack_of_row(row)


def _asked(row: Row) -> tuple[Any, ...]:
    """What is the same for every defence; the number of worked examples as a text, since a file may hold anything."""
    return (*_where(row), row["question_id"], str(row["settings"].get("exemplars") or 0))


def _seconds(row: Row) -> float | None:
    """Return the seconds an answer took; None if calls of it came from a cache, or it was its defence's first."""
    timing: Mapping[str, Any] = row["timing"]
    return None if timing.get("cached_calls") or timing.get("first") else timing["seconds"]


def _ratio(rows: Iterable[Row], vanilla: Mapping[tuple[Any, ...], float | None]) -> float | None:
    """Return the time of rows over that of vanilla RAG on the same questions; None where one of them is not known."""
    pairs = [(_seconds(row), vanilla.get(_asked(row))) for row in rows]
    known = [(own, base) for own, base in pairs if own is not None and base is not None]
    below = sum(base for _, base in known)
    return sum(own for own, _ in known) / below if below > 0 else None


def _line(rows: Sequence[Row], vanilla: Mapping[tuple[Any, ...], float | None]) -> Line:
    first = rows[0]
    attack = attack_of_row(first)
    done = [row for row in rows if row.get("error") is None]
    errors = Counter(
        f"{row['error']['type']}: {row['error']['message'][:200]}" for row in rows if row.get("error") is not None
    )
    scores = [row["scores"] for row in done]
    costs = [row["cost"] for row in done]
    long = first["task"] == "long"
    radii = _radii(done, long)
    repeats = next(filter(None, (row["answer"].get("determinism") for row in done)), None)
    mean_costs: Mapping[str, Any] = {name: _mean(cost.get(name) for cost in costs) for name in _COSTS}
    return Line(
        **{name: first[name] for name in ("dataset", "task", "model", "setup", "defense", "settings")},
        top_k=first.get("top_k"),
        attack=attack,
        n=len(done),
        failed=len(rows) - len(done),
        errors=dict(errors.most_common()),
        accuracy=EMPTY if long else _rate(s["correct"] for s in scores),
        judge=bootstrap_mean(_known(s.get("judge") for s in scores), limits=SCORE),
        unreadable=sum(bool(s.get("unreadable") or s.get("failure")) for s in scores),
        asr=_rate(s["hijacked"] for s in scores),
        both=_rate(s["both"] for s in scores),
        abstention=_rate(s["abstained"] for s in scores),
        told=EMPTY if long else _rate(bool(s.get("told")) for s in scores),
        found=_rate(s.get("found") for s in scores),
        radius=bootstrap_mean(radii["right"]),
        radius_wrong=bootstrap_mean(radii["wrong"]),
        radius_abstained=bootstrap_mean(radii["abstained"]),
        held=EMPTY if long else _held(radii["right"], len(done)),
        held_wrong=EMPTY if long else _held(radii["wrong"], len(done)),
        **mean_costs,
        with_tokens=sum(c.get("prompt_tokens") is not None and c.get("completion_tokens") is not None for c in costs),
        seconds=_mean(map(_seconds, done)),
        latency_ratio=_ratio(done, vanilla),
        certified=_certified(done, SCORE if long else RATE),
        metric=first.get("metric"),
        expected=expected_accuracy(rows) if attack.name == "none" else (),
        repeats="" if repeats is None else repeats_in_words(repeats["model"], repeats["why"]),
        warnings=warnings_in_all(map(_warnings, done)),
    )


def _radii(rows: Iterable[Row], long: bool) -> dict[str, list[int]]:
    """The radii of right answers, of wrong ones and of abstentions; none of long answers is simply right or wrong."""
    found: dict[str, list[int]] = {"right": [], "wrong": [], "abstained": []}
    for row in rows:
        right = row["scores"]["correct"] == 1 and not long
        kind = "right" if right else "abstained" if row["scores"]["abstained"] else "right" if long else "wrong"
        found[kind].append(int(row["answer"]["radius"]))
    return found


def _held(radii: Sequence[int], count: int) -> Interval:
    """Return the share of all answers that are among these and have a radius of at least 1."""
    held = sum(radius >= 1 for radius in radii)
    return _rate([True] * held + [False] * (count - held))


def _certified(rows: Iterable[Row], limits: tuple[float, float]) -> tuple[CertifiedScore, ...]:
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        for certificate in row.get("certificates") or ():
            found.setdefault((certificate["attack"], certificate["corruption_size"]), []).append(certificate)
    lines = []
    for (attack, size), certificates in sorted(found.items()):
        taus = [float(c["tau"]) if c["certified"] else 0.0 for c in certificates]
        undecided = [c for c in certificates if not c["certified"]]
        estimates = [float(c["estimate"]["value"]) for c in undecided if c.get("estimate")]
        score, estimate = bootstrap_mean(taus, limits=limits), bootstrap_mean(estimates, limits=limits)
        lines.append(CertifiedScore(attack, size, score, sum(tau > 0 for tau in taus), len(undecided), estimate))
    return tuple(lines)


def _rate(values: Iterable[float | bool | None]) -> Interval:
    return bootstrap_mean([float(v) for v in _known(values)], limits=RATE)


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _known(values: Iterable[_Value | None]) -> list[_Value]:
    return [value for value in values if value is not None]


def warnings_in_all(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The warnings of several rows or lines as those of one, the commonest first.

    Warnings that differ in numbers and quoted names alone are one kind, and the first of them stands for all.
    """
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for warnings in found:
        for text, count in warnings.items():
            first.setdefault(_kind(text), text)
            counts[_kind(text)] += count
    return {first[kind]: count for kind, count in counts.most_common()}


def _warnings(row: Row) -> dict[str, int]:
    """One warning of each kind, of the answer or its certificates."""
    said = [*row["answer"]["warnings"], *(w for c in row.get("certificates") or () for w in c["warnings"])]
    return dict.fromkeys({_kind(text): text[:_LONGEST] for text in reversed(said)}.values(), 1)


def _kind(text: str) -> str:
    return _OWN.sub("#", text[:_LONGEST])
