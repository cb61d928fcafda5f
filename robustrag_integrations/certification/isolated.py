"""Calls about the untouched groups of every case, once each, as inference would make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import (
    NO_QUORUM,
    NOTHING_BENIGN,
    Findings,
    Ledger,
    Question,
    smaller_size_fails,
)
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import (
    Found,
    Quorum,
    Reading,
    counted_responses,
    read_responses,
    truncation_warnings,
)
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reading import reply_warnings

NOTHING = PassageGroup(0, ())  # stands for a corrupted group where a batch must have as many rows as at inference

Readings: TypeAlias = dict[tuple[int, tuple[int, ...]], Reading[Found]]


class IsolatedPrompts(Protocol):
    """Groups to their isolated prompts."""

    def __call__(self, groups: Sequence[PassageGroup], /) -> Sequence[Prompt]:
        """One prompt per group."""
        ...


class CaseOf(Protocol[Found]):
    """A method's evaluation of one case."""

    def __call__(
        self, found: Findings, number: int, case: BenignCase, readings: Sequence[Reading[Found]], ledger: Ledger, /
    ) -> Asking[None]:
        """Add what can be answered to the findings."""
        ...


def ask_cases(
    sizes: Sequence[Findings],
    prompts_of: IsolatedPrompts,
    read: Callable[[Response], Reading[Found]],
    ledger: Ledger,
    placed: Callable[[Reading[Found], PassageGroup], Reading[Found]],
    *,
    same_batches: bool,
) -> Asking[Readings[Found]]:
    """Ask every untouched group of every case, and read the responses; sizes that exceed the limit are given up.

    Args:
        sizes: the findings, by ascending corruption size.
        prompts_of: groups to prompts.
        read: the reading that inference makes of a response.
        ledger: the count of the calls.
        placed: holds what was read against the group's own passages.
        same_batches: True to ask as many groups in one batch as inference does, the last ones filled up.

    Returns:
        Readings by (groups in all where batches matter, else 0; ranks of the group's passages).
    """
    replies: dict[tuple[int, tuple[int, ...]], Response] = {}
    asked: dict[tuple[int, tuple[int, ...]], PassageGroup] = {}
    for found in sizes:
        wanted: dict[int, dict[tuple[int, ...], PassageGroup]] = {}
        for case in found.cases:
            place = wanted.setdefault(batch_key(case, same_batches), {})
            place.update((r, g) for r, g in zip(case.ranks, case.groups, strict=True))
        for total, groups in wanted.items():
            new = {ranks: g for ranks, g in groups.items() if (total, ranks) not in replies}
            if len(new) > ledger.left:
                found.give_up(f"{len(new):,} more to ask, and {count_of(ledger.left, 'model call')} left")
                break
            for ranks in _chunks(list(new), total or len(new)):
                batch = [new[r] for r in ranks]
                asked.update(((total, r), new[r]) for r in ranks)
                filled = batch + [NOTHING] * (total - len(batch) if total else 0)
                answers = yield Ask(tuple(prompts_of(filled)), "isolated")
                ledger.spent += len(filled)
                replies.update(
                    ((total, r), s) for r, s in zip(ranks, counted_responses(batch, answers[: len(batch)]), strict=True)
                )
    found_in = read_responses(list(replies.values()), read)
    readings = {key: placed(reading, asked[key]) for key, reading in zip(replies, found_in, strict=True)}
    for found in sizes:
        found.warnings = _warnings(found, readings, same_batches)
    return readings


def certify_sizes(
    question: Question,
    quorum: Quorum,
    prompts_of: IsolatedPrompts,
    read: Callable[[Response], Reading[Found]],
    certify_case: CaseOf[Found],
    *,
    placed: Callable[[Reading[Found], PassageGroup], Reading[Found]] = lambda reading, _: reading,
    same_batches: bool,
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first; a size that fails settles the larger ones.

    Args:
        question: the question to certify.
        quorum: number of groups that must be asked with success.
        prompts_of: groups to prompts.
        read: the reading that inference makes of a response.
        certify_case: adds what can be answered next to one case's untouched groups to the findings.
        placed: holds what was read against the group's own passages.
        same_batches: True to ask as many groups in one batch as inference does.
    """
    sizes = [Findings(size, question.cases(size)) for size in question.sizes]
    ledger = Ledger(question.max_model_calls)
    readings = yield from ask_cases(sizes, prompts_of, read, ledger, placed, same_batches=same_batches)
    failed: int | None = None
    for found in sizes:
        if failed is not None:
            found.settle(smaller_size_fails(failed))
        for number, case in enumerate(found.cases):
            if found.done:
                break
            if not case.groups:
                found.open_ended(NOTHING_BENIGN)
                continue
            own = readings_of(case, readings, same_batches=same_batches)
            if quorum.can_be_missed([reading.response for reading in own], case.corrupted):
                found.add(None, 0.0, NO_QUORUM, number)
                continue
            yield from certify_case(found, number, case, own, ledger)
        found.model_calls = ledger.spent
        if failed is None and found.certified and found.tau == 0:
            failed = found.size
    return tuple(sizes)


def _warnings(found: Findings, readings: Readings[Found], same_batches: bool) -> tuple[str, ...]:
    keys = dict.fromkeys((batch_key(case, same_batches), ranks) for case in found.cases for ranks in case.ranks)
    counted = [readings[key].response for key in keys if key in readings]
    said = [*truncation_warnings([r.truncated for r in counted]), *reply_warnings(counted)]
    if any(r.text is None for r in counted):
        said.append("tau is about runs in which the model fails on the same untouched groups again")
    return tuple(said)


def batch_key(case: BenignCase, same_batches: bool) -> int:
    """Return the number of rows in a group's batch where its response may depend on that, else 0."""
    return case.total if same_batches else 0


def readings_of(case: BenignCase, readings: Readings[Found], *, same_batches: bool) -> list[Reading[Found]]:
    """Return the readings of a case's untouched groups."""
    return [readings[batch_key(case, same_batches), ranks] for ranks in case.ranks]


def _chunks(ranks: list[tuple[int, ...]], size: int) -> list[list[tuple[int, ...]]]:
    source = iter(ranks)
    return list(iter(lambda: list(islice(source, size)), []))
