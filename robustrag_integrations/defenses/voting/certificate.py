"""Certificate of a majority vote (paper, section IV-A, the warm-up example, without its slack).

The options are known, so R is always finite: an option is possible if it wins with all corrupted groups voting for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.defenses.voting.counting import tally_votes
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION


def possible_winners(votes: Sequence[int | None], options: int, corrupted: int) -> list[int | None]:
    """Return the options that can win next to m' corrupted groups; None is among them if possibly no group votes.

    All corrupted groups voting for an option is the best they can do for it.
    """
    winners = {tally_votes([*votes, *[option] * corrupted], options).winner for option in range(options)}
    if all(vote is None for vote in votes):
        winners.add(None)
    return sorted(winners, key=lambda w: -1 if w is None else w)


def voting_certification_plan(
    question: Question, choices: Sequence[str], settings: VotingSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a multiple-choice question, the smallest first."""

    def prompts_of(groups: Sequence[Any]) -> Any:
        return settings.isolated_prompts(question.query, groups, choices)

    def vote_of(response: Response) -> Reading[int]:
        return settings.vote_of(response, choices)

    certify_case = partial(_certify_case, choices)
    return certify_sizes(question, settings.quorum, prompts_of, vote_of, certify_case, same_batches=same_batches)


def _certify_case(
    choices: Sequence[str],
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[int]],
    ledger: Ledger,
) -> Asking[None]:
    votes = [reading.found for reading in readings]
    winners = possible_winners(votes, len(choices), case.corrupted)
    texts = [ABSTENTION if w is None else choices[w] for w in winners]
    scores = yield from ledger.scored(texts)
    counts = tally_votes(votes, len(choices)).counts
    if not found.evidence:
        shown = {choice: counts[i] for i, choice in enumerate(choices)}
        found.evidence = {"counts": shown, "corrupted_groups": case.corrupted}
    for winner, text, score in zip(winners, texts, scores, strict=True):
        count = 0 if winner is None else counts[winner]
        found.add(text, score, f"{count_of(count, 'untouched vote')} and up to {case.corrupted} corrupted", number)
