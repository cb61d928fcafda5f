"""Certificate of a majority vote (paper, section IV-A, the warm-up example, without its slack).

The options are known, so R is always finite: an option is possible if it wins with all corrupted groups voting for it,
and the abstention if they can bring about a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import certify_sizes, without_calls
from robustrag_integrations.defenses.agreement.plurality import possible_winners
from robustrag_integrations.defenses.voting.settings import RULE, VotingSettings
from robustrag_integrations.prompts import ABSTENTION


def voting_certification_plan(
    question: Question, choices: Sequence[str], settings: VotingSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a multiple-choice question, the smallest first."""

    def possible(votes: Sequence[int | None], case: BenignCase, found: Findings) -> dict[str, str]:
        winners, none, _ = possible_winners(votes, RULE, case.corrupted, range(len(choices)))
        counts = Counter(vote for vote in votes if vote is not None)
        if not found.evidence:
            shown = {choice: counts[i] for i, choice in enumerate(choices)}
            found.evidence = {"counts": shown, "corrupted_groups": case.corrupted}
        texts = {**({ABSTENTION: 0} if none else {}), **{choices[winner]: counts[winner] for winner in sorted(winners)}}
        corrupted = f"and up to {case.corrupted} corrupted"
        return {text: f"{count_of(count, 'untouched vote')} {corrupted}" for text, count in texts.items()}

    return certify_sizes(
        question,
        settings.quorum_rule,
        lambda groups: settings.isolated_prompts(question.query, groups, choices),
        lambda response: settings.vote_of(response, choices),
        without_calls(possible),
        same_batches=same_batches,
    )
