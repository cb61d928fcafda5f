"""Certificate of consensus aggregation: every answer possible next to m' corrupted groups, without a model call.

The answer is made of what groups say, so R is enumerated from the untouched groups' replies: every set of keys that can
be agreed on, and for each every form in which its keys can be shown. Where corrupted groups alone can have a key agreed
on, or decide how a key is shown, they can cause any text; so they can where one of them may be the only group that
answers (`agreement/sole.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from math import prod

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.defenses.agreement.agreed import (
    Unbounded,
    Worded,
    deciding_keys,
    grounds_of,
    possible_forms,
    text_of,
)
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.agreement.sole import ANY_REPLY
from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.defenses.consensus.counting import ConsensusRule
from robustrag_integrations.defenses.consensus.plan import Consensus
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.keywords.runs import ReplyKeys, is_part
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION

_MOST_TEXTS = 20_000
_MOST_CONTESTED = 14  # keys that may or may not be agreed on: 2^14 sets
_MOST_CORES = 300  # keys that may become the core

ANY_KEY = "can have any key agreed on"


class _TooMany(Exception):
    """Raised when there are more possible answers than the certificate looks at."""


def consensus_certification_plan(
    question: Question, settings: ConsensusSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    reader = settings.reader.for_question(question.query)
    prompts_of = partial(settings.isolated_prompts, question.query)
    certify_case = partial(_certify_case, settings, reader)
    return (
        yield from certify_sizes(
            question,
            settings.quorum,
            prompts_of,
            reader.read,
            certify_case,
            same_batches=same_batches,
        )
    )


def _certify_case(
    settings: ConsensusSettings,
    reader: ReplyReader,
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[ReplyKeys]],
    ledger: Ledger,
) -> Asking[None]:
    if not found.evidence:
        shown = Consensus.of(readings, settings, reader).evidence
        found.evidence = {**shown, "corrupted_groups": case.corrupted, "untouched_groups": len(case.groups)}
    try:
        texts = sorted(possible_texts(readings, case.corrupted, settings, reader))
    except Unbounded as why:
        found.open_ended(f"{count_of(case.corrupted, 'corrupted group')} alone {why}")
        return
    except _TooMany:
        found.give_up(f"more than {_MOST_TEXTS:,} answers are possible; retrieve more sources, or raise share")
        return
    scores = yield from ledger.scored(texts)
    for text, score in zip(texts, scores, strict=True):
        found.add(text, score, count_of(len(texts), "possible answer"), number)


def possible_texts(
    readings: Sequence[Reading[ReplyKeys]], corrupted: int, settings: ConsensusSettings, reader: ReplyReader
) -> set[str]:
    """Return every answer that is possible next to so many corrupted groups, which may say anything or abstain.

    Raises:
        Unbounded: any text is possible.
        _TooMany: there are too many.
    """
    rule, replies = settings.rule, [reading.found for reading in readings]
    consensus = Consensus.of(readings, settings, reader)
    if corrupted == 0 or consensus.holds(corrupted):
        return {consensus.text or ABSTENTION}
    said = [None if reply is None else reply.keys for reply in replies]
    answering = sum(keys is not None for keys in said)
    if not answering:
        raise Unbounded(ANY_REPLY)
    counts = votes_for(said)
    untouched = max(counts.values(), default=0)
    if corrupted >= max(untouched, rule.min_support):
        raise Unbounded(ANY_KEY)
    echoes = sum(reply is not None and reply.is_echo for reply in replies)
    texts = {ABSTENTION} if untouched < rule.min_support or echoes + corrupted >= untouched else set()
    if answering == 1:
        texts.add(consensus.text or ABSTENTION)  # the corrupted groups keep silent
    for core in _cores(counts, untouched, corrupted):
        together = votes_for([keys for keys in said if keys is not None and core in keys])
        for added in range(max(0, max(untouched, rule.min_support) - counts[core]), corrupted + 1):
            for agreed in _agreed_sets(core, together, added, rule):
                deciding = deciding_keys(agreed)
                texts |= _texts(deciding, replies, corrupted)
                if not all(any(grounds_of(key, replies)) for key in deciding):
                    texts.add(ABSTENTION)
                if len(texts) > _MOST_TEXTS:
                    raise _TooMany
    return texts


def _cores(counts: Mapping[str, int], untouched: int, corrupted: int) -> list[str]:
    """Return the keys that can be the core: the others' counts do not fall."""
    cores = [key for key, count in counts.items() if count + corrupted >= untouched]
    if len(cores) > _MOST_CORES:
        raise _TooMany
    return cores


def _agreed_sets(core: str, together: Mapping[str, int], added: int, rule: ConsensusRule) -> Iterator[frozenset[str]]:
    """The sets that can be agreed on around a core that so many corrupted groups say, too, less what decides nothing.

    They add to whatever they say with it, so that each key next to it is in if it reaches the share without them, and
    can be in if it reaches it with all of them. A part of what is in anyway changes no answer.
    """
    strongest = together[core] + added
    if rule.reached(added, strongest):
        raise Unbounded(ANY_KEY)
    always = frozenset(key for key, count in together.items() if rule.reached(count, strongest)) | {core}
    contested = [
        key
        for key, count in together.items()
        if key not in always and rule.reached(count + added, strongest) and not any(is_part(key, k) for k in always)
    ]
    if len(contested) > _MOST_CONTESTED:
        raise _TooMany
    for size in range(len(contested) + 1):
        for chosen in combinations(contested, size):
            yield always.union(chosen)


def _texts(answer: Sequence[str], replies: Sequence[ReplyKeys | None], corrupted: int) -> set[str]:
    """Return the texts that can show these deciding keys."""
    shown = [possible_forms(key, replies, corrupted) for key in answer]
    if prod(map(len, shown)) > _MOST_TEXTS:
        raise _TooMany
    return {
        text_of([Worded(key, form, ()) for key, form in zip(answer, forms, strict=True)]) for forms in product(*shown)
    }
