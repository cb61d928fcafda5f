"""The plan of majority voting (paper, section III-B on short answers with predefined options).

ask every group alone for an option                   `settings.isolated_prompts`
read the option of each reply                         `options.parse_option`
count; most votes win, and a tie is told              `agreement/plurality.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.defenses.agreement.plurality import Count
from robustrag_integrations.defenses.voting.options import is_unclear
from robustrag_integrations.defenses.voting.settings import RULE, VotingSettings
from robustrag_integrations.plans.asking import Heard, PlanInput, ask_groups
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps


def voting_plan(inputs: PlanInput, choices: Sequence[str], settings: VotingSettings) -> Steps[Draft]:
    """Ask each group alone which option it chooses; the option with most votes wins."""

    def count_of_votes(found: Sequence[int | None], votes: Sequence[int]) -> Count[int]:
        return Count(tuple(found), tuple(votes), RULE)

    prompts = settings.isolated_prompts(inputs.query, inputs.groups, choices)
    read = settings.vote_of
    heard = yield from ask_groups(inputs, prompts, lambda r: read(r, choices), settings.quorum_rule, count_of_votes)
    count = count_of_votes(heard.found, heard.votes)
    winner = count.winner

    def said(vote: int) -> dict[str, Any]:
        found: dict[str, Any] = {"choice": vote, "words": (choices[vote],)}
        if vote == winner:
            return {"status": "supports", **found}
        margin = None if winner is None else float(count.votes[winner] - count.votes[vote])
        return {"status": "differs", **found, "margin": margin}

    answer = inputs.answer(
        None if winner is None else choices[winner],
        groups=heard.reports(said),
        choice=winner,
        warnings=(*_tie_warnings(count), *_unclear_warnings(heard, choices)),
        evidence={"counts": {c: count.votes.get(i, 0) for i, c in enumerate(choices)}},
        margin_unit="votes",
    )
    if settings.disagreement == "tell":
        tied = [d for d in answer.dissent if heard.found[d.groups[0]] in count.tied]
        answer = answer.telling("Sources disagree", tied)
    return Draft(answer, heard, count)


def _tie_warnings(count: Count[int]) -> tuple[str, ...]:
    """Say that options tie: none of them is the answer."""
    if not count.tied:
        return ()
    return (f"no answer: {len(count.tied)} options have {count_of(count.votes[count.tied[0]], 'vote')} each",)


def _unclear_warnings(heard: Heard[int], choices: Sequence[str]) -> tuple[str, ...]:
    """Warn of replies that were read and fit no option: options and model may not go together."""
    none = [r.response for r in heard.readings if r.found is None and r.copy_of is None]
    unclear = [r.text for r in none if r.text and not (r.abstains or r.note) and is_unclear(r.text, choices)]
    if not unclear:
        return ()
    return (
        f"{len(unclear)} of {len(heard.readings)} responses name none of the options, or several, and count for "
        f"nothing; the first: {printable(unclear[0], 60)!r}",
    )
