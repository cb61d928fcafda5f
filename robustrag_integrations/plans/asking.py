"""The steps that all plans share: ask every group in isolation, count failures as abstentions, hold the quorum.

1. `ask_groups` yields one `Ask` with a prompt per group (Algorithm 1, line 5); with `Early`, replies may be missing.
2. `read_response` reads each reply for itself: whatever it makes a reader raise costs its own group alone.
3. Too few successes raise `QuorumError`; of groups that share a text and a reply, the first one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import in_one_line, redacted
from robustrag_integrations.answers.answer import GroupReport
from robustrag_integrations.errors import INTERRUPTS, ModelError, QuorumError
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import BLANK, Response, Until
from robustrag_integrations.plans.requests import Ask, Emit, Reply, Request, responses_of
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reading import CutReplies, counted, final_answer
from robustrag_integrations.replies.streams import RETRACTED
from robustrag_integrations.reply_text.reasoning import parts_of

Found = TypeVar("Found")

_COMPARED = attrgetter(*(f.name for f in fields(Response) if f.compare))  # the fields that make two replies equal


@dataclass(frozen=True)
class Quorum:
    """The quorum: the share of all groups, of all votes where groups have several, whose calls must succeed."""

    share: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)) or not 0 <= self.share <= 1:
            raise ValueError(f"quorum={self.share!r} must be a share of the groups in [0, 1]")

    def needed(self, votes: int) -> int:
        """Return the smallest sufficient number of votes whose groups succeed; at least one."""
        return max(1, math.ceil(self.share * votes - 1e-9)) if votes else 0

    def radius(self, responses: Sequence[Response], weights: Sequence[int] | None = None) -> int:
        """Return how many votes an attacker can make fail before the quorum is missed and no answer comes at all."""
        weights = weights or [1] * len(responses)
        return _succeeded(responses, weights) - self.needed(sum(weights))

    def can_be_missed(self, responses: Sequence[Response], corrupted: int) -> bool:
        """Tell whether no answer comes at all when this many corrupted groups, besides those that responded, fail."""
        return _succeeded(responses, [1] * len(responses)) < self.needed(len(responses) + corrupted)


@dataclass(frozen=True)
class Reading(Generic[Found]):
    """The content read from one group's response.

    Attributes:
        response: the response as it counts: a failure if it could not be read.
        found: its keywords or its vote; None for an abstention, a failure or a copy.
        copy_of: the earlier group with the same text and the same reply; None if there is none, or it counts by itself.
        is_open: True if it may still say anything: it was not waited for, or it may be a copy of a group that was not.
    """

    response: Response
    found: Found | None
    copy_of: int | None = None
    is_open: bool = False


@dataclass(frozen=True)
class Early(Generic[Found]):
    """The rule for stopping early, without waiting for the remaining groups.

    Attributes:
        radius: of the answer that these readings give, where open ones may say anything; -1 if they may change it.
        least: the radius from which no group is waited for.
        wave_size: number of groups that are asked at once; None for all.
    """

    radius: Callable[[Sequence[Reading[Found]]], int]
    least: int = 0
    wave_size: int | None = None

    @classmethod
    def of(cls, rules: VoteRules, radius: Callable[[Sequence[Reading[Found]]], int]) -> Early[Found] | None:
        """Build it from the rules; None if all groups are waited for."""
        if not rules.stop_when_decided:
            return None
        least = 0 if isinstance(rules.min_radius, Mapping) else rules.min_radius
        return cls(radius, least, rules.wave_size)


def read_response(
    response: Response,
    read: Callable[[str], Found | None],
    cut_replies: CutReplies = "abstain",
    *,
    by_line: bool = False,
    by_lines: bool = False,
) -> Reading[Found]:
    """Read one response's answer; whatever `read` raises over it makes its group fail, and no other.

    A passage can be written so that a keyword extractor, say, raises on the response about it. That must cost its own
    group alone. Interrupts and cancellations pass.

    Args:
        response: as it came; `replies.reading.counted` says how it counts.
        read: from the answer's text to what is found in it; None for an abstention.
        cut_replies: the treatment of a reply that was cut.
        by_line: True if a first line is enough for `read`.
        by_lines: True if each line counts by itself.
    """
    response = counted(response, cut_replies, by_line=by_line, by_lines=by_lines)
    if response.text is None or response.abstains:
        return Reading(response, None)
    try:
        return Reading(response, read(response.text))
    except INTERRUPTS:
        raise
    except BaseException as error:
        reason = f"its response could not be read: {in_one_line(error)}"
        return Reading(replace(response, text=None, error=reason), None)


def read_responses(responses: Sequence[Response], read: Callable[[Response], Reading[Found]]) -> list[Reading[Found]]:
    """Read each response; equal ones once, whatever each of them cost."""
    known: dict[Any, Reading[Found]] = {}
    readings = []
    for response in responses:
        same = (_COMPARED(response), response.logprobs)
        if (reading := known.get(same)) is None:
            reading = known[same] = read(response)
        if reading.response.usage is not response.usage:
            reading = replace(reading, response=replace(reading.response, usage=response.usage))
        readings.append(reading)
    return readings


def ask_groups(
    groups: Sequence[PassageGroup],
    prompts: Sequence[Prompt],
    quorum: Quorum,
    read: Callable[[Response], Reading[Found]],
    early: Early[Found] | None = None,
    *,
    placed: Callable[[Reading[Found], PassageGroup], Reading[Found]] = lambda reading, _: reading,
    by_letter: bool = False,
) -> Generator[Request, Reply, list[Reading[Found]]]:
    """Ask every group its own prompt (paper, Algorithm 1, line 5), and read its reply.

    A group with nothing to read abstains, whatever the model replies to its prompt. The prompt stays among the others,
    so that no passage decides how many there are: in one batch it is read; where each is a call, it makes none.

    Args:
        groups: the isolated groups.
        prompts: one per group.
        quorum: number of calls that must succeed; those that were not waited for did not.
        read: reads a response.
        early: the rule for stopping before all have answered; None for never.
        placed: holds what was read against the group's own passages.
        by_letter: True if the answer shows a group's own words, so that copies must agree to the letter.

    Returns:
        One reading per group.

    Raises:
        QuorumError: too many groups failed.
    """
    weights = [group.weight for group in groups]
    needed = quorum.needed(sum(weights))
    prompts = [replace(p, blank=True) if g.is_empty else p for p, g in zip(prompts, groups, strict=True)]

    def readings_of(replies: Sequence[Response]) -> list[Reading[Found]]:
        found = read_responses(counted_responses(groups, replies), read)
        return [placed(reading, group) for reading, group in zip(found, groups, strict=True)]

    if not prompts:
        replies: Sequence[Response] = ()
    elif early is None:
        replies = responses_of((yield Ask(tuple(prompts), "isolated")))
    else:

        def decided(heard: Sequence[Response]) -> bool:
            if _succeeded(heard, weights) < needed:
                return False
            readings = readings_of(heard)
            enough = _succeeded([reading.response for reading in readings], weights) >= needed
            return enough and early.radius(_one_vote_each(groups, readings, by_letter)) >= early.least

        replies = responses_of((yield Ask(tuple(prompts), "isolated", until=Until(decided, early.wave_size))))
    readings = readings_of(replies)
    responses = [reading.response for reading in readings]
    if (succeeded := _succeeded(responses, weights)) < needed:
        causes = {i: redacted(r.error or "no text") for i, r in enumerate(responses) if r.text is None}
        reports = tuple([report(g, r) for g, r in zip(groups, responses, strict=True)])
        unit = "groups" if set(weights) == {1} else "votes"
        cause = next((r.cause for r in responses if r.cause is not None), None)
        raise QuorumError(succeeded, sum(weights), needed, causes, reports, unit) from cause
    return _one_vote_each(groups, readings, by_letter)


def _one_vote_each(
    groups: Sequence[PassageGroup], readings: Sequence[Reading[Found]], by_letter: bool
) -> list[Reading[Found]]:
    """Have each copy of an earlier group's text that says the same abstain (`VoteRules.copies`).

    One that says something else counts: otherwise an attacker could silence a group by a copy of its text that the
    model reads another way. docs/internals/proofs.md proves that the radius holds.
    """
    if all(group.copy_of is None for group in groups):
        return [r if r.response.unheard is None else replace(r, is_open=True) for r in readings]
    said: dict[tuple[int, Hashable, str | None], int] = {}
    missing: dict[int, int] = {}  # text -> the group with it that was not waited for
    counted = []
    for group, reading in zip(groups, readings, strict=True):
        text = group.index if group.copy_of is None else group.copy_of
        if reading.response.unheard is not None:
            missing.setdefault(text, group.index)
            reading = replace(reading, is_open=True)
        elif text in missing:
            note = f"it does not count: group {missing[text] + 1} has the same text, and was not waited for"
            reading = Reading(replace(reading.response, note=note), None, is_open=True)
        elif reading.found is not None:
            letters = reading.response.text if by_letter else None
            first = said.setdefault((text, cast(Hashable, reading.found), letters), group.index)
            if first != group.index:
                reading = replace(reading, found=None, copy_of=first)
        counted.append(reading)
    return counted


def counted_responses(groups: Sequence[PassageGroup], replies: Sequence[Response]) -> list[Response]:
    """Return the replies as they count: an abstention for a group with nothing to read."""
    return [
        Response("", abstains=True) if g.is_empty and not r.unheard and r != BLANK else r
        for g, r in zip(groups, replies, strict=True)
    ]


def votes_counted(groups: Sequence[PassageGroup], readings: Sequence[Reading[Found]]) -> tuple[list[int], int]:
    """Return each group's votes, none for groups that may still say anything, and the votes of these in all."""
    votes = [0 if reading.is_open else group.weight for group, reading in zip(groups, readings, strict=True)]
    return votes, sum(group.weight for group in groups) - sum(votes)


def calls_made(readings: Sequence[Reading[Found]]) -> int:
    """Return the number of groups that were asked, cancelled calls included."""
    return sum(reading.response.was_asked for reading in readings)


def early_evidence(readings: Sequence[Reading[Found]], early: Early[Found] | None) -> dict[str, Any]:
    """Return the number of replies after which the answer was decided, where stopping early is allowed."""
    return {} if early is None else {"decided_after": sum(reading.response.unheard is None for reading in readings)}


def early_warnings(readings: Sequence[Reading[Found]]) -> list[str]:
    """Warn that not all groups were waited for, and say what that means."""
    heard = sum(reading.response.unheard is None for reading in readings)
    if heard == len(readings):
        return []
    return [
        f"decided after {heard} of {len(readings)} groups: the text is the one that all would have given, whatever the "
        "others say; the radius is what was proved by then, and may depend on who answered first"
    ]


@contextmanager
def naming_groups(groups: Sequence[PassageGroup], responses: Sequence[Response]) -> Iterator[None]:
    """Attach every group's report to a `ModelError` in the block."""
    try:
        yield
    except ModelError as error:
        error.groups = tuple([report(g, r) for g, r in zip(groups, responses, strict=True)])
        raise


def ask_final(
    prompt: Prompt,
    cut_replies: CutReplies = "abstain",
    *,
    shown: bool = True,
    whole: bool = False,
) -> Generator[Request, Reply, Response]:
    """Ask the final question, whose answer the user gets.

    Args:
        prompt: the question.
        cut_replies: the treatment of an answer that was cut.
        shown: True if the answer is shown word for word.
        whole: True if it is shown once it is complete, not in pieces.

    Returns:
        The response, with the answer as its text (`replies.reading.final_answer`).

    Raises:
        ModelError: the call failed, or the answer was cut.
    """
    [response] = responses_of((yield Ask((prompt,), "final", shown, whole)))
    answer = final_answer(response, cut_replies)
    if shown and (unseen := _unseen(response, answer)):
        yield Emit(unseen)
    return answer


def _unseen(response: Response, answer: Response) -> str:
    """Return the part of a final answer that no stream has shown: a text in place of nothing, or the mark of a cut."""
    if response.note == RETRACTED:
        return f"\n\n{answer.text}"
    seen, text = parts_of(response.text or "").answer.strip(), answer.text or ""
    return text[len(seen) :] if seen and text.startswith(seen) else text


def report(group: PassageGroup, response: Response | None = None, /, **findings: Any) -> GroupReport:
    """Build a group's report with its passages' names; it abstained or failed unless the findings say otherwise."""
    if response is not None:
        findings = {
            "response": response.text,
            "truncated": response.truncated,
            "note": response.note,
            "reasoning_chars": response.reasoning_chars,
            **findings,
        }
        if response.unheard is not None:
            findings = {**findings, "status": "not_asked", "note": response.error}
        elif response.text is None:
            findings = {"status": "failed", "error": printable(redacted(response.error or "failed"), 300), **findings}
    if findings.get("copy_of") is not None:
        findings = {"status": "copy", **findings}
    return GroupReport(**_of_group(group), **findings)


def _of_group(group: PassageGroup) -> dict[str, Any]:
    return {
        "index": group.index,
        "passage_ids": tuple([p.id or "" for p in group.passages]),
        "origins": group.origins,
        "positions": group.ranks,
        "votes": group.weight,
        "tier": group.tier,
        "dated": group.dated,
    }


def truncation_warnings(truncated: Sequence[bool]) -> list[str]:
    """Warn of groups whose passages were cut to fit."""
    if not any(truncated):
        return []
    return [
        f"the passages of {sum(truncated)} of {len(truncated)} groups were cut to fit the model's context; of a file "
        "that is too long, keep fewer passages (per_origin=)"
    ]


def _succeeded(responses: Sequence[Response], weights: Sequence[int]) -> int:
    return sum(weight for response, weight in zip(responses, weights, strict=True) if response.text is not None)
