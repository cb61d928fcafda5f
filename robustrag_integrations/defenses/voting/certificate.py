"""Certificate of a majority vote (paper, section IV-A, the warm-up example, without its slack).

The options are known, so R is always finite: an option is possible if it wins with all corrupted groups voting for it,
and the abstention if they can bring about a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.defenses.agreement.plurality import possible_winners
from robustrag_integrations.defenses.voting.settings import RULE, VotingSettings
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION


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
    winners, none, _ = possible_winners(votes, RULE, case.corrupted, range(len(choices)))
    counts = Counter(vote for vote in votes if vote is not None)
    if not found.evidence:
        shown = {choice: counts[i] for i, choice in enumerate(choices)}
        found.evidence = {"counts": shown, "corrupted_groups": case.corrupted}
    texts = [*([ABSTENTION] if none else []), *(choices[winner] for winner in sorted(winners))]
    scores = yield from ledger.scored(texts)
    for text, score in zip(texts, scores, strict=True):
        count = 0 if text == ABSTENTION else counts[choices.index(text)]
        found.add(text, score, f"{count_of(count, 'untouched vote')} and up to {case.corrupted} corrupted", number)
