"""Calls about the untouched sources of every case, once each, as inference would make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import (
    NO_QUORUM,
    NOTHING_BENIGN,
    Asking,
    Findings,
    Ledger,
    Question,
    smaller_size_fails,
)
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Found, Reading, read_replies, spare_calls, truncation_warnings
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.replies.reading import reply_warnings
from robustrag_integrations.text.prompts import Prompt

NOTHING = Source(0, ())  # stands for a corrupted source where a batch must have as many rows as at inference

# A source's place: sources in all where batches matter, else 0; and the ranks of its passages.
Place: TypeAlias = tuple[int, tuple[int, ...]]
PromptsOf: TypeAlias = Callable[[Sequence[Source]], Sequence[Prompt]]
# Adds what can be answered next to one case's untouched sources to the findings; the number is the case's.
CertifyCase: TypeAlias = Callable[[Findings, int, BenignCase, Sequence[Reading[Any]], Ledger], Asking[None]]


class Unbounded(Exception):
    """Raised when corrupted sources alone can cause any text; the message says what they can do."""


class TooManyTexts(Exception):
    """Raised when more texts are possible than are looked at; the message says what to do."""


def without_calls(possible: Callable[[Sequence[Reading[Any]], BenignCase, Findings], Mapping[str, str]]) -> CertifyCase:
    """Return the step of a method whose possible texts follow from what untouched sources say, without a model call.

    `possible` gives each text with its cause in words, and may show evidence in the findings.
    """

    def certify_case(
        found: Findings, number: int, case: BenignCase, readings: Sequence[Reading[Any]], ledger: Ledger
    ) -> Asking[None]:
        try:
            causes = possible(readings, case, found)
        except Unbounded as why:
            found.open_ended(f"{count_of(case.corrupted, 'corrupted source')} alone {why}")
            return
        except TooManyTexts as why:
            found.give_up(str(why))
            return
        scores = yield from ledger.scored(causes)
        for (text, cause), score in zip(causes.items(), scores, strict=True):
            found.add(text, score, cause, number)

    return certify_case


def certify_sizes(
    question: Question,
    quorum: float,
    prompts_of: PromptsOf,
    read: Callable[[Response], Reading[Found]],
    certify_case: CertifyCase,
    *,
    same_batches: bool,
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; a size that fails settles the larger ones.

    With `same_batches`, as many sources are asked in one batch as inference does, the last ones filled up.
    """
    sizes = [Findings(size, question.cases(size)) for size in question.sizes]
    ledger = Ledger(question.max_model_calls)

    def places(case: BenignCase) -> list[Place]:
        return [(case.total if same_batches else 0, ranks) for ranks in case.ranks]

    wanted = [
        {place: source for case in found.cases for place, source in zip(places(case), case.sources, strict=True)}
        for found in sizes
    ]
    readings = yield from _ask(sizes, wanted, prompts_of, read, ledger)
    failed: int | None = None
    for found, own_places in zip(sizes, wanted, strict=True):
        counted = [readings[place].response for place in own_places if place in readings]
        found.warnings = (*truncation_warnings([r.truncated for r in counted]), *reply_warnings(counted))
        if any(r.text is None for r in counted):
            found.warnings += ("it is about runs in which the model fails on the same untouched sources again",)
        if failed is not None:
            found.settle(smaller_size_fails(failed))
        for number, case in enumerate(found.cases):
            if found.done:
                break
            if not case.sources:
                found.open_ended(NOTHING_BENIGN)
                continue
            own = [readings[place] for place in places(case)]
            if spare_calls([reading.response for reading in own], case.total, quorum) < 0:  # where all others fail
                found.add(None, 0.0, NO_QUORUM, number)
                continue
            yield from certify_case(found, number, case, own, ledger)
        found.model_calls = ledger.spent
        if failed is None and found.certified and found.tau == 0:
            failed = found.size
    return tuple(sizes)


def _ask(
    sizes: Sequence[Findings],
    wanted: Sequence[Mapping[Place, Source]],
    prompts_of: PromptsOf,
    read: Callable[[Response], Reading[Found]],
    ledger: Ledger,
) -> Asking[dict[Place, Reading[Found]]]:
    """Ask every untouched source of every case, and read the responses; sizes that exceed the limit are given up."""
    asked: dict[Place, Source] = {}
    replies: list[Response] = []
    for found, sources in zip(sizes, wanted, strict=True):
        for total in dict.fromkeys(total for total, _ in sources):
            new = [place for place in sources if place[0] == total and place not in asked]
            if len(new) > ledger.left:
                found.give_up(f"{len(new):,} more to ask, and {count_of(ledger.left, 'model call')} left")
                break
            size = total or len(new) or 1
            for start in range(0, len(new), size):
                batch = [sources[place] for place in new[start : start + size]]
                filled = batch + [NOTHING] * (total - len(batch) if total else 0)
                answers: Sequence[Response] = yield Ask(tuple(prompts_of(filled)), "isolated")
                ledger.spent += len(filled)
                replies += answers[: len(batch)]
            asked.update((place, sources[place]) for place in new)
    return dict(zip(asked, read_replies(list(asked.values()), replies, read), strict=True))
