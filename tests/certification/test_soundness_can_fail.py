"""The brute force would notice: certificates and radii with an error planted in them are caught in the same worlds."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robustrag_integrations import counting
from robustrag_integrations.certification import findings, isolated
from robustrag_integrations.counting import Count, Counted
from robustrag_integrations.defenses.consensus import defense as consensus
from robustrag_integrations.defenses.consensus import lists
from robustrag_integrations.defenses.consensus.defense import Outcome
from robustrag_integrations.defenses.consensus.lists import CountedList
from robustrag_integrations.defenses.decoding import plan as decoding_plan
from robustrag_integrations.defenses.decoding import token_choice
from robustrag_integrations.defenses.keyword import defense as keyword
from robustrag_integrations.defenses.keyword.threshold import Threshold
from robustrag_integrations.defenses.voting import defense as voting
from robustrag_integrations.plans.asking import Heard
from tests.helpers.brute_force import Tally, attack_certificates, attack_radius
from tests.helpers.worlds import consensus_world, decoding_world, keyword_world, list_world, voting_world

Planted = dict[str, tuple[Any, Any, str, Callable[[Any], Any]]]  # world, owner of what is replaced, name, real to wrong


def nobody_is_heard_alone(real: Any) -> Any:
    def mistaken(readings: Any, corrupted: int, settings: Any) -> set[str]:
        try:
            return real(readings, corrupted, settings)
        except consensus.Unbounded as why:
            if str(why) != consensus.ANY_SOLE:
                raise
            return {consensus.ABSTENTION}

    return mistaken


def of_items(choices: Callable[[list[str | None]], list[str | None]]) -> Callable[[Any], Any]:
    return lambda real: lambda made, m: {key: choices(wordings) for key, wordings in real(made, m).items()}


IN_CERTIFICATES: Planted = {
    "a consensus' form is never contested": (
        consensus_world, consensus, "_forms", lambda real: lambda votes, key, m: {min(real(votes, key, 0))}),
    "a corrupted vote less": (
        consensus_world, consensus, "possible", lambda real: lambda votes, m, rule: real(votes, m - 1, rule)),
    "nobody is heard alone": (consensus_world, consensus, "possible_texts", nobody_is_heard_alone),
    "wordings are never contested": (
        list_world, lists, "possible_items", of_items(lambda w: [w[0], *(o for o in w[1:] if o is None)])),
    "items are never contested": (
        list_world, lists, "possible_items", of_items(lambda w: [o for o in w if o is not None])),
    "attackers alone do not count": (
        keyword_world, keyword, "keyword_span", lambda real: lambda *a: replace(real(*a), unbounded=False)),
    "attackers do not raise the threshold": (
        keyword_world, keyword, "keyword_span",
        lambda real: lambda said, m, rule: replace(real(said, m, rule), always=real(said, 0, rule).always)),
    "nobody fails on purpose": (keyword_world, isolated, "spare_calls", lambda real: lambda *a: 0),
    "only the first case is looked at": (
        keyword_world, findings, "benign_source_cases", lambda real: lambda *a, **k: real(*a, **k)[:1]),
    "a vote less": (
        voting_world, voting, "possible_winners", lambda real: lambda v, rule, m, k: real(v, rule, max(0, m - 1), k)),
    "ties are never reached": (
        voting_world, voting, "possible_winners",
        lambda real: lambda *a: (lambda found: (found[0], not found[0], found[2]))(real(*a))),
    "attackers weigh less than a source": (
        decoding_world, token_choice, "possible_tokens", lambda real: lambda c, t0, m, *_: real(c, t0, m / 2, *_)),
    "the no-retrieval token is forgotten": (
        decoding_world, token_choice, "possible_tokens",
        lambda real: lambda *a: replace(real(*a), tokens=real(*a).tokens[:1])),
}  # fmt: skip


def all_hold(most: int) -> Any:
    return np.ones(most + 1, bool)


def items_need_only_stay(real: Any) -> Any:
    def mistaken(self: Any, most: int, pending: int = 0, *, verbatim: bool = False) -> Any:
        return np.all([all_hold(most), *(self._stays(key, most, pending) for key in self.shown)], axis=0)

    return mistaken


def verdicts_are_forgotten(real: Any) -> Any:
    def mistaken(self: Any, *rest: Any, **more: Any) -> Any:
        return real(replace(self, rule=replace(self.rule, verdict=lambda key: None)), *rest, **more)

    return mistaken


def quorum_is_forgotten(real: Any) -> Any:
    def mistaken(self: Any, outcome: Any) -> Any:
        careless = copy(self)
        careless.spare = 99
        return real(careless, outcome)

    return mistaken


IN_RADII: Planted = {
    "a vote too many": (keyword_world, Counted, "radius", lambda real: lambda *a, **k: real(*a, **k) + 1),
    "a vote too many for an option": (voting_world, Counted, "radius", lambda real: lambda *a, **k: real(*a, **k) + 1),
    "keys do not enter": (
        consensus_world, Count, "holding", lambda real: lambda self, most, pending=0, **_: all_hold(most)),
    "wordings do not enter": (consensus_world, Outcome, "has_wordings", lambda real: False),
    "ties are taken for wins": (consensus_world, counting, "_LOST_TIE", lambda real: -1),
    "ties of options are taken for wins": (voting_world, counting, "_LOST_TIE", lambda real: -1),
    "opposite verdicts do not enter": (consensus_world, Count, "holding", verdicts_are_forgotten),
    "replaced votes add nothing": (consensus_world, counting, "_REPLACED", lambda real: 0),
    "replaced votes add nothing to an option": (voting_world, counting, "_REPLACED", lambda real: 0),
    "other keywords are not looked at": (
        keyword_world, Threshold, "_stay_away", lambda real: lambda self, *rest: all_hold(rest[2])),
    "kept keywords are not looked at": (
        keyword_world, Threshold, "_stay", lambda real: lambda self, *rest: all_hold(rest[2])),
    "items need only stay": (list_world, CountedList, "holding", items_need_only_stay),
    "items always stay": (
        list_world, CountedList, "_stays", lambda real: lambda self, key, most, pending=0: all_hold(most)),
    "sources never fail on purpose": (keyword_world, Heard, "radii", quorum_is_forgotten),
    "voters never fail on purpose": (voting_world, Heard, "radii", quorum_is_forgotten),
    "a decoding step too many": (
        decoding_world, decoding_plan, "step_radius", lambda real: lambda *a: min(real(*a) + 1, a[-1])),
    "replaced sources take nothing away": (
        decoding_world, token_choice, "_largest_sum", lambda real: lambda values, r: 0 * real(values, r)),
}  # fmt: skip


def is_caught(planted: Any, monkeypatch: pytest.MonkeyPatch, attack: Callable[..., None], **made: Any) -> bool:
    make, owner, name, wrong = planted
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    tally = Tally()
    for seed in range(300):
        rng = random.Random(f"mutant/{seed}")
        attack(make(rng, **made), rng, tally)
        if tally.violations:
            return True
    return False


@pytest.mark.parametrize("name", IN_CERTIFICATES)
def test_an_error_planted_in_certificates_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def attack(world: Any, rng: random.Random, tally: Tally) -> None:
        attack_certificates(world, rng, tally, placements=10, replies=40)

    assert is_caught(IN_CERTIFICATES[name], monkeypatch, attack)


@pytest.mark.parametrize("name", IN_RADII)
def test_an_error_planted_in_radii_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def attack(world: Any, rng: random.Random, tally: Tally) -> None:
        attack_radius(world, rng, tally, largest=3, most=500)

    assert is_caught(IN_RADII[name], monkeypatch, attack, agreeing=True)
