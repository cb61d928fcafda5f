"""The theorem of `ClaimRule` against every attack on small worlds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest

from robustrag_integrations.defenses.agreement.claims import rule as counting
from robustrag_integrations.defenses.agreement.claims.rule import ClaimRule
from robustrag_integrations.defenses.agreement.linear_forms import Votes, largest_radius

CLAIMS = "ab"
UNSAID = "z"  # a claim that nobody makes
World = tuple[list[frozenset[str] | None], list[int], ClaimRule]


def worlds(count: int, *, weighted: bool, seed: int = 0) -> Iterator[World]:
    rng = random.Random(seed)
    for _ in range(count):
        groups = rng.randint(1, 5)
        said = [
            None if rng.random() < 0.15 else frozenset(c for c in CLAIMS if rng.random() < 0.6) for _ in range(groups)
        ]
        weights = [rng.randint(1, 3) if weighted else 1 for _ in range(groups)]
        yield said, weights, ClaimRule(rng.randint(1, 4))


def attacked(
    said: Sequence[frozenset[str] | None], weights: Sequence[int], votes: int
) -> Iterator[list[frozenset[str] | None]]:
    """Each replacement of groups of exactly so many votes together."""
    every = [frozenset(c) for size in range(4) for c in combinations([*CLAIMS, UNSAID], size)]
    for size in range(len(said) + 1):
        for chosen in combinations(range(len(said)), size):
            if sum(weights[i] for i in chosen) == votes:
                for replies in product(every, repeat=size):
                    changed = list(said)
                    for place, reply in zip(chosen, replies, strict=True):
                        changed[place] = reply
                    yield changed


def radius_of(world: World) -> int:
    said, weights, rule = world
    votes = Votes(len(said), weights)
    kept = rule.kept(said, weights)
    return largest_radius(lambda most: rule.holding(said, kept, votes, most), votes.total)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_radius_of_the_set_and_of_each_claim_is_exact(weighted: bool) -> None:
    attacks = promised = 0
    for said, weights, rule in worlds(70, weighted=weighted):
        total = sum(weights)
        kept = rule.kept(said, weights)
        radius = radius_of((said, weights, rule))
        own = dict(zip(sorted(kept), rule.radii(said, sorted(kept), Votes(len(said), weights)), strict=True))
        broken, lost = total + 1, dict.fromkeys(kept, total + 1)
        for votes in range(min(total, 3) + 1):
            for changed in attacked(said, weights, votes):
                attacks += 1
                now = rule.kept(changed, weights)
                if now != kept:
                    broken = min(broken, votes)
                for claim in kept - now:
                    lost[claim] = min(lost[claim], votes)
        reached = min(total, 3)
        assert min(radius, reached) == min(broken - 1, reached), (said, weights, rule)
        assert {c: min(r, reached) for c, r in own.items()} == {c: min(r - 1, reached) for c, r in lost.items()}
        promised += radius > 0
    assert attacks > 10_000
    assert promised > 5


def test_votes_that_are_pending_may_say_anything() -> None:
    for said, weights, rule in worlds(150, weighted=False, seed=1):
        kept = rule.kept(said, weights)
        for pending in (1, 2):
            holds = rule.holding(said, kept, Votes(len(said), weights), 0, pending)[0]
            every = [frozenset(c) for size in range(4) for c in combinations([*CLAIMS, UNSAID], size)]
            changed = any(
                rule.kept([*said, *more], [*weights, *[1] * pending]) != kept for more in product(every, repeat=pending)
            )
            assert holds == (not changed)


def test_the_brute_force_finds_a_radius_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    real = counting.ClaimRule.holding

    def of_kept_claims_alone(self, said, kept, votes, most, pending=0):  # type: ignore[no-untyped-def]
        alone = [None if claims is None else claims & set(kept) for claims in said]
        return real(self, alone, kept, votes, most, pending)

    monkeypatch.setattr(counting.ClaimRule, "holding", of_kept_claims_alone)
    with pytest.raises(AssertionError):
        test_the_radius_of_the_set_and_of_each_claim_is_exact(False)


def test_five_of_seven_lose_three() -> None:
    said = [frozenset("a")] * 5 + [None] * 2
    rule = ClaimRule(2)
    assert rule.radii(said, ["a"], Votes(7)) == [3]
    assert radius_of((said, [1] * 7, rule)) == 1  # two liars add a claim of their own
    assert radius_of((said, [1] * 7, ClaimRule(3))) == 2
    assert radius_of(([*said[:6], frozenset("b")], [1] * 7, rule)) == 0  # one liar more makes b two
