"""Majority voting (paper, section III-B on short answers with predefined options).

ask every source alone for an option                   `VotingSettings.isolated_prompts`
read the option of each reply                         `options.parse_option`
count; most votes win, and a tie is told              `counting.py`

The certificate (section IV-A, the warm-up example, without its slack) knows the options: one is possible if it wins
with all corrupted sources voting for it. Where they can bring about a tie people are told who says what: any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import Unbounded, certify_sizes, without_calls
from robustrag_integrations.counting import Count, Rule, possible_winners
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import ChoiceSettings, SourceSettings
from robustrag_integrations.defenses.voting.options import is_unclear, parse_option, shown_options
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.plans.asking import Heard, PlanInput, Reading, ask_sources, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import VotingOptions

RULE = Rule(min_support=1)
"""One vote is enough for an option; a tie is none."""


@dataclass(frozen=True, kw_only=True)
class VotingSettings(SourceSettings, ChoiceSettings):
    """Everything that decides a vote apart from the model."""

    method: ClassVar[Method] = METHODS["voting"]

    def isolated_prompts(self, query: str, sources: Sequence[Source], choices: Sequence[str]) -> list[Prompt]:
        """One prompt per source."""
        render = self.prompts.isolated.render
        return [
            render(context=g.text, query=query, choices=shown_options(choices, g.text, self.prompts)) for g in sources
        ]

    def reading(self, choices: Sequence[str]) -> Callable[[Response], Reading[int]]:
        """Return what reads a source's vote."""
        return lambda r: read_response(r, lambda text: parse_option(text, choices), self.cut_replies)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {
            "task": "multiple_choice",
            "options": self.options,
            "quorum": self.quorum,
            "cut_replies": self.cut_replies,
            "disagreement": self.disagreement,
        }


def voting_plan(inputs: PlanInput, settings: VotingSettings) -> Steps[Draft]:
    """Ask each source alone which option it chooses; the option with most votes wins."""
    choices = inputs.choices or ()

    def count_of_votes(found: Sequence[int | None], pending: int) -> Count[int]:
        return Count(tuple(found), RULE)

    prompts = settings.isolated_prompts(inputs.query, inputs.sources, choices)
    heard = yield from ask_sources(inputs, prompts, settings.reading(choices), settings.quorum, count_of_votes)
    count = count_of_votes(heard.found, heard.pending)
    winner = count.winner

    def said(vote: int) -> dict[str, Any]:
        return {
            "status": "supports" if vote == winner else "differs",
            "choice": vote,
            "words": (choices[vote],),
        }

    answer = inputs.answer(
        None if winner is None else choices[winner],
        sources=heard.reports(said),
        choice=winner,
        warnings=_warnings(count, heard, choices),
        evidence={"counts": {c: count.votes.get(i, 0) for i, c in enumerate(choices)}},
    )
    if settings.disagreement == "tell" and count.tied:
        tied = {place for place, vote in enumerate(heard.found) if vote in count.tied}
        answer = answer.telling(first=tied)
    return Draft(answer, heard, count)


def _warnings(count: Count[int], heard: Heard[int], choices: Sequence[str]) -> tuple[str, ...]:
    none = [r.response for r in heard.readings if r.found is None]
    unclear = [r.text for r in none if r.text and not (r.abstains or r.note) and is_unclear(r.text, choices)]
    said = []
    if count.tied:
        said.append(f"no answer: {len(count.tied)} options have {count_of(count.votes[count.tied[0]], 'vote')} each")
    if unclear:
        said.append(
            f"{len(unclear)} of {len(heard.readings)} responses name none of the options, or several, and count for "
            f"nothing; the first: {printable(unclear[0], 60)!r}"
        )
    return tuple(said)


def voting_certification_plan(
    question: Question, settings: VotingSettings, choices: Sequence[str] | None = None, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a multiple-choice question, the smallest first."""
    choices = choices or ()

    def possible(readings: Sequence[Reading[int]], case: BenignCase, found: Findings) -> dict[str, str]:
        votes = [reading.found for reading in readings]
        winners, none, _ = possible_winners(votes, RULE, case.corrupted, range(len(choices)))
        counts = Counter(vote for vote in votes if vote is not None)
        if not found.evidence:
            shown = {choice: counts[i] for i, choice in enumerate(choices)}
            found.evidence = {"counts": shown, "corrupted_sources": case.corrupted}
        if none and settings.disagreement == "tell" and (case.corrupted or counts):
            raise Unbounded("can bring about a tie, and people are told who says what")
        texts = {**({ABSTENTION: 0} if none else {}), **{choices[winner]: counts[winner] for winner in sorted(winners)}}
        corrupted = f"and up to {case.corrupted} corrupted"
        return {text: f"{count_of(count, 'untouched vote')} {corrupted}" for text, count in texts.items()}

    return certify_sizes(
        question,
        settings.quorum,
        lambda sources: settings.isolated_prompts(question.query, sources, choices),
        settings.reading(choices),
        without_calls(possible),
        same_batches=same_batches,
    )


class MajorityVoting(TextDefense):
    """Majority voting over the options of a multiple-choice question.

    Guarantee: replacing the content of any `answer.radius` sources leaves the winning option as it is; that of this
    run, if the model samples (`answer.determinism`).

    Theorem (`counting.py`): with c(u) votes for option u, r replaced sources leave the winner x if, for every
    other u, c(x) - c(u) > 2r.

    Options with equally many votes are no answer: the text tells who says what.

    Args:
        model: the model to ask, once per source.
        task: `multiple_choice`, the only one.
        prompts: your own `PromptSet`; None for the project's.
        options: the settings of the method:

    Examples:
        >>> answer = MajorityVoting(model).answer("Capital of France?", passages, choices=["Lyon", "Paris"])
        >>> answer.text, answer.choice, answer.radius
    """

    decides_early = True
    settings_type = VotingSettings
    settings: VotingSettings
    promise = Promise("the option that won this run")

    def __init__(self, model: TextModel, **given: Unpack[VotingOptions]) -> None:
        super().__init__(model, **given)

    plan_of = staticmethod(voting_plan)
    certification_plan = staticmethod(voting_certification_plan)
