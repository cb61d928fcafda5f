"""Certificate of consensus aggregation: every answer possible next to m' corrupted groups, without a model call.

The answer is a group's own words, so R is enumerated from the untouched groups' replies: every key that can win, in
every wording in which it can be shown, and the abstention. Where corrupted groups alone can make a key win, decide how
it is written, or be the only source that is heard, they can cause any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import Unbounded, certify_sizes, without_calls
from robustrag_integrations.core import possible, wordings
from robustrag_integrations.defenses.agreement.linear_forms import Votes
from robustrag_integrations.defenses.consensus.outcome import Outcome
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings, Said
from robustrag_integrations.prompts import ABSTENTION

ANY_KEY = "can have any answer win"
ANY_FORM = "can decide how the answer is written"
ANY_SOLE = "can be the only one that is heard, and have any text shown"


def consensus_certification_plan(
    question: Question, settings: ConsensusSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    read = settings.reading(question.query)
    prompts_of = partial(settings.isolated_prompts, question.query)

    def texts(said: Sequence[Said | None], case: BenignCase, found: Findings) -> dict[str, str]:
        if not found.evidence:
            shown = Outcome.of(said, settings.rule).evidence
            found.evidence = {**shown, "corrupted_groups": case.corrupted, "untouched_groups": len(case.groups)}
        possible = sorted(possible_texts(said, case.corrupted, settings))
        return dict.fromkeys(possible, count_of(len(possible), "possible answer"))

    step = without_calls(texts)
    return certify_sizes(question, settings.quorum_rule, prompts_of, read, step, same_batches=same_batches)


def possible_texts(said: Sequence[Said | None], corrupted: int, settings: ConsensusSettings) -> set[str]:
    """Return every answer that is possible next to so many corrupted groups, which may say anything or abstain.

    What people are told where sources disagree is an abstention.

    Raises:
        Unbounded: any text is possible.
    """
    outcome, rule = Outcome.of(said, settings.rule), settings.rule
    if outcome.count.winner is not None and outcome.holding(Votes(outcome.weights), 0, corrupted, verbatim=True)[0]:
        return {outcome.text}
    votes = [own if own is not None and own.counts else None for own in outcome.said]
    if corrupted == 0:
        texts = {outcome.text or ABSTENTION}
        winners: Iterable[str | None] = outcome.count.tied if settings.runoff == "auto" else ()
    else:
        keys = possible(votes, corrupted, rule)
        if keys is None:
            raise Unbounded(ANY_KEY)
        if max(outcome.count.votes.values(), default=0) < rule.min_support:
            raise Unbounded(ANY_SOLE)
        texts, winners = {ABSTENTION}, keys - {None}
    for key in winners:
        texts |= _forms(votes, key, corrupted)
    return texts


def _forms(votes: Sequence[Said | None], key: str | None, corrupted: int) -> set[str]:
    """Return the wordings in which a key can be shown when corrupted groups write it as they like.

    Raises:
        Unbounded: one that no untouched group writes is among them.
    """
    written = wordings(votes, key, [1] * len(votes))
    most = max(written.values(), default=0)
    if corrupted and corrupted >= most:
        raise Unbounded(ANY_FORM)
    return {form for form, count in written.items() if count + corrupted >= most}
