"""Majority voting for multiple choice (paper, section III-B on short answers with predefined options)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import GroupReport, RobustAnswer
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.voting.counting import VoteTally, tally_votes, vote_radius
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.normalise import plain_words
from robustrag_integrations.passages import GroupBy, PassageGroup, grouping_warnings
from robustrag_integrations.plans.asking import Quorum, ask_groups, report, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import (
    ABSTENTION,
    NO_INFORMATION,
    Prompt,
    PromptSet,
    format_choices,
    option_label,
    prompts_for,
)

if TYPE_CHECKING:
    from robustrag_integrations.certification.certify import CertificationRun
    from robustrag_integrations.certification.findings import Question
    from robustrag_integrations.metrics import Metric

_LETTER = re.compile(
    r"(?:(?:the )?(?:correct |right |best )?(?:answer|option|choice)(?: is|:)? ?)?"
    r"[(\[*_]{0,3}([a-z0])[)\]*_]{0,3}(?:[.:)].*)?"
)
_LOOKED_AT = 500  # characters; a vote is short, and a hostile response may be long


def check_choices(choices: Sequence[str] | None) -> tuple[str, ...]:
    """The options of a multiple-choice question.

    Raises:
        TypeError, ValueError: not 2 to 26 different non-empty texts.
    """
    if choices is None:
        raise ValueError("multiple choice needs choices=[...], the options to vote on")
    if isinstance(choices, str) or not all(isinstance(c, str) for c in choices):
        raise TypeError(f"choices must be a list of str, got {choices!r:.80}")
    if not 2 <= len(choices) <= 26:
        raise ValueError(f"choices must be 2 to 26 options, got {len(choices)}")
    seen: dict[str, int] = {}
    for i, choice in enumerate(choices):
        if not choice.strip():
            raise ValueError(f"choices[{i}] is empty")
        if (first := seen.setdefault(plain_words(choice), i)) != i:
            raise ValueError(f"choices[{first}] and choices[{i}] are the same: {choice!r:.60}")
    return tuple(choices)


def parse_option(response: str, choices: Sequence[str]) -> int | None:
    """The option a response votes for; None for "no information", an abstention, or anything unclear.

    A response is a letter ("B", "(b)", "B.", "Answer: B", "B. Lyon"), or an option's text, or a text that names exactly
    one option. A function of this one response.
    """
    line = unicodedata.normalize("NFKC", response[:_LOOKED_AT]).strip().split("\n", 1)[0].strip()
    plain, options = plain_words(line), _plain_options(tuple(choices))
    if plain in options:
        return options.index(plain)
    if match := _LETTER.fullmatch(" ".join(line.casefold().split())):
        labels = [option_label(i) for i in range(len(choices))]
        letter = match.group(1).upper()
        return labels.index(letter) if letter in labels else None
    if is_abstention(line) or _NOTHING_FOUND in plain:
        return None
    named = [i for i, option in enumerate(options) if f" {option} " in f" {plain} "]
    return named[0] if len(named) == 1 else None


_NOTHING_FOUND = plain_words(NO_INFORMATION)


@lru_cache(maxsize=256)
def _plain_options(choices: tuple[str, ...]) -> tuple[str, ...]:
    """The options as responses are compared with them; every group votes on the same ones."""
    return tuple(map(plain_words, choices))


@dataclass(frozen=True)
class VotingSettings:
    """Everything that decides a vote apart from the model."""

    prompts: PromptSet
    quorum: Quorum

    @classmethod
    def of(cls, *, prompts: PromptSet | None = None, quorum: float = 0.5) -> VotingSettings:
        """From user arguments; see `MajorityVoting`."""
        return cls(prompts or prompts_for("multiple_choice"), Quorum(quorum))

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str]) -> list[Prompt]:
        """One prompt per group; "No information found" is the last option."""
        options = format_choices([*choices, NO_INFORMATION])
        return [self.prompts.isolated.render(context=g.text, query=query, choices=options) for g in groups]

    def vote_of(self, response: Response, choices: Sequence[str]) -> int | None:
        """A group's vote; None when it abstains or has failed."""
        return None if response.text is None else parse_option(response.text, choices)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"task": "multiple_choice", "quorum": self.quorum.share}


def voting_plan(
    query: str,
    groups: Sequence[PassageGroup],
    choices: Sequence[str],
    settings: VotingSettings,
    *,
    group_by: GroupBy | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask every group alone which option it chooses; the option with most votes wins, the first among equals."""
    responses = yield from ask_groups(groups, settings.isolated_prompts(query, groups, choices), settings.quorum)
    votes = [settings.vote_of(r, choices) for r in responses]
    tally = tally_votes(votes, len(choices))
    text = ABSTENTION if tally.winner is None else choices[tally.winner]
    yield Emit(text)
    return RobustAnswer(
        text=text,
        radius=max(0, min(vote_radius(tally), settings.quorum.radius(responses))),
        abstained=tally.winner is None,
        query=query,
        defense="voting",
        groups=tuple(map(_report, groups, responses, votes, [tally] * len(groups))),
        choice=tally.winner,
        warnings=(
            *model_warnings,
            *grouping_warnings(groups, group_by),
            *truncation_warnings([r.truncated for r in responses]),
        ),
        settings=settings.as_dict(),
        evidence={"counts": {c: tally.counts[i] for i, c in enumerate(choices)}},
        margin_unit="votes",
        model_calls=len(groups),
    )


def _report(group: PassageGroup, response: Response, vote: int | None, tally: VoteTally) -> GroupReport:
    if vote is None or tally.winner is None:
        return report(group, response)
    if vote == tally.winner:
        return report(group, response, status="supports", choice=vote)
    margin = float(tally.counts[tally.winner] - tally.counts[vote])
    return report(group, response, status="outvoted", choice=vote, margin=margin)


class MajorityVoting(TextDefense):
    """Majority voting over the options of a multiple-choice question.

    Guarantee: replacing the content of any `answer.radius` groups leaves the winning option as it is, provided that
    the model is deterministic.

    Args:
        model: what is asked, once per group.
        prompts: your own `PromptSet`; None for the project's.
        quorum: share of the groups that must have been asked with success, in [0, 1].
        group_size: omega, adjacent passages per group.
        group_by: `"source"` or a function from Passage to a key, in place of `group_size`.

    Example:
        >>> answer = MajorityVoting(model).answer("Capital of France?", passages, choices=["Lyon", "Paris"])
        >>> answer.text, answer.choice, answer.radius
    """

    def __init__(
        self,
        model: TextModel,
        *,
        prompts: PromptSet | None = None,
        quorum: float = 0.5,
        group_size: int = 1,
        group_by: GroupBy | None = None,
    ) -> None:
        super().__init__(model, group_size=group_size, group_by=group_by)
        self.settings = VotingSettings.of(prompts=prompts, quorum=quorum)

    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan:
        options = check_choices(choices)
        return voting_plan(
            query, groups, options, self.settings, group_by=self.group_by, model_warnings=self.model.warnings
        )

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """The vote's possible winners on this defence's model and settings."""
        from robustrag_integrations.certification.certify import text_run
        from robustrag_integrations.defenses.voting.certificate import voting_certification_plan

        options = check_choices(choices)
        plan = voting_certification_plan(question, options, self.settings, same_batches=self.model.shares_batches)
        return text_run("voting", question, plan, self.model, metric, self.settings.as_dict())
