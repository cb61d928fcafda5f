"""Numbers of groups of each tier that can be replaced together: by brute force, on worlds of two and three tiers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from robustrag_integrations import (
    ConsensusAggregation,
    KeywordAggregation,
    Passage,
    QuorumError,
    RobustAnswer,
)
from robustrag_integrations.counting.linear_forms import HoldsPerBudget, TierVotes, largest_budgets
from robustrag_integrations.counting.plurality import Count, Rule
from robustrag_integrations.defenses.keyword.threshold import Tally, Threshold
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE, ScriptedModel

SETS = [None, *map(frozenset, ["", "a", "b", "ab", "n", "an", "abn"])]
REPLIES = ["a b", "a", "b", "A", "c", "z q", None, "b a"]


@dataclass
class Method:
    """One world: what the groups say, how many votes they have, and the code that counts them."""

    said: list[Any]
    weights: list[int]
    moves: Sequence[Any]
    answer: Callable[[Sequence[Any]], Any]
    budgets: Callable[[Sequence[str]], tuple[Any, ...]]
    radius: Callable[[], int]
    same: Callable[[Any, Any], bool] = lambda one, other: one == other


def _proved(weights: Sequence[int], holding: Callable[[TierVotes], HoldsPerBudget]) -> Callable[..., tuple[Any, ...]]:
    return lambda tiers: largest_budgets(tiers, lambda budgets: holding(TierVotes(weights, tiers, budgets)))


def voting(rng: random.Random, size: int, weights: list[int]) -> Method:
    options = rng.randint(2, 3)
    said = [rng.choice([None, *range(options), 0, 0, 0]) for _ in range(size)]
    rule = Rule(rng.choice([1, 1, 2]), rng.choice([0, 4, 2]))
    count = Count(tuple(said), tuple(weights), rule)
    return Method(
        said,
        weights,
        [None, *range(options)],
        lambda votes: Count(tuple(votes), tuple(weights), rule).winner,
        _proved(weights, lambda by_tier: count.holding(by_tier, by_tier.last)),
        count.radius,
    )


def keyword(rng: random.Random, size: int, weights: list[int]) -> Method:
    beta = rng.choice([None, 1, 2, 3, 5, 9]) if set(weights) == {1} else None
    alpha = rng.choice([0, 0.2, 0.3, 1 / 3, 0.5, 0.8, 1])
    threshold = replace(Threshold.of(alpha, beta), least=rng.choice([1, 1, 2]), is_strict=rng.random() < 0.3)
    said = [rng.choice([None, *map(frozenset, ["", "a", "a", "a", "a", "a", "ab", "abc", "b"])]) for _ in range(size)]
    tally = Tally.of(said, threshold, weights)
    return Method(
        said,
        weights,
        SETS,
        lambda sets: Tally.of(sets, threshold, weights).kept,
        _proved(weights, lambda by_tier: tally.holding(by_tier, by_tier.last)),
        tally.radius,
    )


def plan(
    defense: type[KeywordAggregation | ConsensusAggregation], replies_of: Sequence[str | None] = REPLIES, **given: Any
) -> Callable[..., Method]:
    """The whole defence, with groups that fail, the quorum, and answers that stand in one source."""

    def made(rng: random.Random, size: int, weights: list[int]) -> Method:
        said = [rng.choice([replies_of[0]] * 14 + [*replies_of]) for _ in range(size)]
        votes = {f"{place}.md": weight for place, weight in enumerate(weights)}
        settings: dict[str, Any] = {
            "quorum": rng.choice([0.0, 0.5]),
            "disagreement": "abstain",
            "weights": votes,
            **({"min_support": rng.choice([1, 2])} if defense is ConsensusAggregation else {"alpha": 0.5}),
        }

        def ask(replies: Sequence[str | None], **rules: Any) -> RobustAnswer | None:
            model = ScriptedModel(lambda text: replies[int(text.split()[0])], lambda prompt: prompt)
            passages = [Passage(f"{place} a b c", source=f"{place}.md") for place in range(len(replies))]
            try:
                return defense(model, prompts=BARE, **settings, **given, **rules).answer("q", passages)
            except QuorumError:
                return None

        def text(replies: Sequence[str | None]) -> str:
            answer = ask(replies)
            return "no quorum" if answer is None else answer.text

        def budgets(tiers: Sequence[str]) -> tuple[Any, ...]:
            answer = ask(said, tiers={f"{place}.md": tier for place, tier in enumerate(tiers)})
            if answer is None:
                return (dict.fromkeys(tiers, 0),)
            assert answer.tier_budgets is not None
            return tuple({tier: budget[tier] for tier in dict.fromkeys(tiers)} for budget in answer.tier_budgets)

        return Method(said, weights, replies_of, text, budgets, lambda: 0, _same_items if "task" in given else same)

    return made


def _same_items(one: str, other: str) -> bool:
    return {*one.casefold().splitlines()} == {*other.casefold().splitlines()}


ITEMS = ["- red mill\n- blue barn", "- red mill", "- blue barn", "- green gate", None, "I don't know", "- Blue barn"]
PLANS = {
    "keyword_plan": plan(KeywordAggregation),
    "consensus_plan": plan(ConsensusAggregation),
    "list": plan(ConsensusAggregation, ITEMS, task="list"),
}
METHODS = {"voting": voting, "keyword": keyword}


def _choices(tiers: Sequence[str], budget: dict[str, int]) -> Iterator[tuple[int, ...]]:
    """Every set of groups that a budget can replace."""
    places = {tier: [i for i, own in enumerate(tiers) if own == tier] for tier in budget}
    chosen = (itertools.combinations(places[tier], count) for tier, count in budget.items())
    return (tuple(itertools.chain(*each)) for each in itertools.product(*chosen))


def _is_broken(world: Method, tiers: Sequence[str], budget: dict[str, int], rng: random.Random, tries: int) -> bool:
    """Whether an attack within the budget changes the answer: every one, or of many so many."""
    clean = world.answer(world.said)
    for places in _choices(tiers, budget):
        every = len(world.moves) ** len(places)
        replies = (
            itertools.product(world.moves, repeat=len(places))
            if every <= tries
            else (rng.choices(world.moves, k=len(places)) for _ in range(tries))
        )
        for new in replies:
            said = list(world.said)
            for place, reply in zip(places, new, strict=True):
                said[place] = reply
            if not world.same(world.answer(said), clean):
                return True
    return False


def attack(name: str, worlds: int, seed: int, tries: int = 600) -> tuple[int, int, int, list[Any]]:
    """Return budgets that were proved, budgets just beyond them, how many of these an attack breaks, and violations."""
    rng = random.Random(f"{name}/{seed}")
    proved_budgets = beyond = reached = 0
    violations: list[Any] = []
    for _ in range(worlds):
        size, labels = rng.randint(2, 6), rng.choice(["wo", "wio"])
        tiers = [rng.choice(labels) for _ in range(size)]
        heavy = rng.choice([(1,), (1, 1, 2, 3), (1, 1, 4)])
        per_tier = {tier: rng.choice([1, 1, 4]) for tier in labels}  # votes by tier, as users give them
        weights = [per_tier[t] for t in tiers] if rng.random() < 0.4 else [rng.choice(heavy) for _ in tiers]
        world = (METHODS | PLANS)[name](rng, size, weights)
        proved = world.budgets(tiers)
        assert proved
        for budget in proved:
            proved_budgets += any(budget.values())
            if _is_broken(world, tiers, budget, rng, tries):
                violations.append((world, tiers, budget))
        sizes = {tier: tiers.count(tier) for tier in tiers}
        larger = {tuple((budget | {t: budget[t] + 1}).items()) for budget in proved for t in budget}
        for items in larger:
            more = dict(items)
            within = all(more[t] <= sizes[t] for t in more)
            if within and not any(all(p[t] >= more[t] for t in more) for p in proved):
                beyond += 1
                reached += _is_broken(world, tiers, more, rng, tries)
    return proved_budgets, beyond, reached, violations


@pytest.mark.parametrize("name", METHODS)
def test_no_attack_within_a_budget_changes_the_answer(name: str) -> None:
    proved, beyond, reached, violations = attack(name, 400, 1)
    print(f"{name}: {proved} budgets proved, {len(violations)} violations; of {beyond} beyond, {reached} are broken")
    assert violations == []
    assert proved > 60
    assert reached >= 0.9 * beyond


@pytest.mark.parametrize("name", PLANS)
def test_no_attack_within_a_budget_changes_the_answer_of_a_defence(name: str) -> None:
    proved, beyond, reached, violations = attack(name, 20, 4, tries=30)
    print(f"{name}: {proved} budgets proved, {len(violations)} violations; of {beyond} beyond, {reached} are broken")
    assert violations == []
    assert proved >= 5
    assert reached >= 0.6 * beyond  # a few random attacks of many


@pytest.mark.parametrize("name", METHODS)
def test_of_one_tier_and_one_vote_each_the_budget_is_the_radius(name: str) -> None:
    rng, positive = random.Random(3), 0
    for _ in range(100):
        size = rng.randint(2, 8)
        world = METHODS[name](rng, size, [1] * size)
        [budget] = world.budgets(["x"] * size)
        radius = world.radius()
        assert budget == {"x": max(radius, 0)}, world
        positive += radius > 0
    assert positive >= 10


def test_an_error_planted_in_the_sums_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = TierVotes.worst_case_sums
    monkeypatch.setattr(TierVotes, "worst_case_sums", lambda self, *a, **k: real(self, *a, **k) + 2)
    for name in METHODS:
        assert attack(name, 60, 2)[3], name


def test_of_many_tiers_each_alone_is_tried_and_what_is_not_tried_is_not_proved() -> None:
    tiers = [str(place) for place in range(40)]
    proved = largest_budgets(tiers, lambda budgets: np.array([sum(b.values()) <= 19 for b in budgets]))
    assert {tier: max(budget[tier] for budget in proved) for tier in tiers} == dict.fromkeys(tiers, 1)
    assert len(proved) < 2000
    assert all(sum(budget.values()) <= 19 for budget in proved)
    one = largest_budgets(["x"] * 40, lambda budgets: np.array([sum(b.values()) <= 19 for b in budgets]))
    assert one == ({"x": 19},)
