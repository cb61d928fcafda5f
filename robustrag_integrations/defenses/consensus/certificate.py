"""Certifying consensus aggregation: everything that it can say next to m' corrupted groups, without a model call.

The answer is made of what groups say, so R is enumerated from the untouched groups' responses: every set of keywords
that can be agreed on, and for each every wording. Where corrupted groups alone can have a keyword agreed on, or decide
how the answer is worded, they can cause any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Any

from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import NO_QUORUM, NOTHING_BENIGN, Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.defenses.consensus.counting import ConsensusRule, Wording, list_text
from robustrag_integrations.defenses.consensus.plan import Consensus
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.consensus.wording import phrases_of, wordings_of
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION

_MOST_TEXTS = 20_000
_MOST_CONTESTED = 14  # keywords that may or may not be agreed on: 2^14 sets
_MOST_CORES = 300  # keywords that may become the strongest

ANY_KEYWORD = "corrupted groups alone can have any keyword agreed on"
ANY_WORDING = "corrupted groups alone can decide how the answer is worded"


class _TooMany(Exception):
    """There are more possible answers than are looked at."""


class _Anything(Exception):
    """The attacker can cause any text; the message says why."""


def consensus_certification_plan(
    question: Question, settings: ConsensusSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""

    def prompts_of(groups: Sequence[Any]) -> Any:
        return settings.isolated_prompts(question.query, groups)

    def certify_case(
        found: Findings, number: int, case: BenignCase, readings: Sequence[Reading[frozenset[str]]], ledger: Ledger
    ) -> Asking[None]:
        return _certify_case(settings, found, number, case, readings, ledger)

    read = settings.reader.for_question(question.query).keywords_of
    return certify_sizes(question, prompts_of, read, certify_case, same_batches=same_batches)


def _certify_case(
    settings: ConsensusSettings,
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[frozenset[str]]],
    ledger: Ledger,
) -> Asking[None]:
    if not case.groups:
        found.open_ended(NOTHING_BENIGN)
        return
    if settings.quorum.can_be_missed([reading.response for reading in readings], case.corrupted):
        found.add(None, 0.0, NO_QUORUM, number)
        return
    if not found.evidence:
        shown = Consensus.of(readings, settings).evidence
        found.evidence = {**shown, "corrupted_groups": case.corrupted, "untouched_groups": len(case.groups)}
    try:
        texts = sorted(possible_texts(readings, case.corrupted, settings))
    except _Anything as why:
        found.open_ended(f"{case.corrupted} {why}")
        return
    except _TooMany:
        found.give_up(f"more than {_MOST_TEXTS:,} answers are possible; retrieve more sources, or raise share")
        return
    scores = yield from ledger.scored(texts)
    for text, score in zip(texts, scores, strict=True):
        found.add(text, score, f"{len(texts)} answers are possible", number)


def possible_texts(
    readings: Sequence[Reading[frozenset[str]]], corrupted: int, settings: ConsensusSettings
) -> set[str]:
    """Every answer that is possible next to this many corrupted groups, which may say anything or abstain.

    Raises:
        _Anything: any text is possible.
        _TooMany: there are too many.
    """
    rule, sets = settings.rule, [reading.found for reading in readings]
    found = Consensus.of(readings, settings)
    if corrupted == 0 or found.radius().holds(0, pending=corrupted):
        return {found.text or ABSTENTION}
    counts = votes_for(sets)
    untouched = max(counts.values(), default=0)
    if corrupted >= max(untouched, rule.min_support):
        raise _Anything(ANY_KEYWORD)
    texts = {ABSTENTION} if untouched < rule.min_support else set()
    for core in _cores(counts, untouched, corrupted):
        together = votes_for([said for said in sets if said is not None and core in said])
        for added in range(max(0, max(untouched, rule.min_support) - counts[core]), corrupted + 1):
            for agreed in _agreed_sets(core, together, added, rule):
                phrases = phrases_of(agreed)
                worded = wordings_of([(r.response.text, r.found) for r in readings], agreed, phrases)
                texts |= _texts(phrases, worded, added, corrupted, counts[core] + added)
                if len(texts) > _MOST_TEXTS:
                    raise _TooMany
    return texts


def _cores(counts: Mapping[str, int], untouched: int, corrupted: int) -> list[str]:
    """The keywords that can be the strongest: the others' counts do not fall."""
    cores = [w for w, c in counts.items() if c + corrupted >= untouched]
    if len(cores) > _MOST_CORES:
        raise _TooMany
    return cores


def _agreed_sets(core: str, together: Mapping[str, int], added: int, rule: ConsensusRule) -> Iterator[frozenset[str]]:
    """The sets that can be agreed on around a strongest keyword that so many corrupted groups say, too.

    They add to whatever they say with it, so that each keyword next to it is in if it reaches the share without them,
    and can be in if it reaches it with all of them.
    """
    strongest = together[core] + added
    if rule.reached(added, strongest):
        raise _Anything(ANY_KEYWORD)
    always = frozenset(w for w, c in together.items() if rule.reached(c, strongest)) | {core}
    contested = [w for w, c in together.items() if w not in always and rule.reached(c + added, strongest)]
    if len(contested) > _MOST_CONTESTED:
        raise _TooMany
    for size in range(len(contested) + 1):
        for chosen in combinations(contested, size):
            yield always.union(chosen)


def _texts(
    phrases: tuple[str, ...], wordings: Sequence[Wording], added: int, corrupted: int, strongest: int
) -> set[str]:
    """How an agreed set can be worded; corrupted groups add windows only where they say the strongest keyword."""
    windows, listed = _majorities([w.window for w in wordings], added, strongest)
    if not listed:
        return windows
    shown = [_ways([w.forms.get(phrase) for w in wordings], phrase, corrupted, strongest) for phrase in phrases]
    if prod(map(len, shown)) > _MOST_TEXTS:
        raise _TooMany
    return windows | {list_text(phrases, parts) for parts in product(*shown)}


def _majorities(said: Sequence[str | None], added: int, strongest: int) -> tuple[set[str], bool]:
    """What a majority can say, and whether it is possible that none says the same.

    Raises:
        _Anything: corrupted groups alone can be a majority.
    """
    if 2 * added > strongest:
        raise _Anything(ANY_WORDING)
    counts = Counter(text for text in said if text is not None)
    if forced := {text for text, count in counts.items() if 2 * count > strongest}:
        return forced, False
    return {text for text, count in counts.items() if 2 * (count + added) > strongest}, True


def _ways(forms: Sequence[str | None], phrase: str, corrupted: int, strongest: int) -> list[str | None]:
    """How a list can show a phrase; None for not at all."""
    said, listed = _majorities(forms, corrupted, strongest)
    ways: set[str | None] = set(said)
    if listed:
        written = sum(form is not None for form in forms)
        if 2 * (written + corrupted) > strongest:
            ways.add(phrase)
        if 2 * written <= strongest:
            ways.add(None)
    return list(ways)
