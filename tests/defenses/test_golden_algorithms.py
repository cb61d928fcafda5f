"""The real methods against `naive_algorithms.py`, on random worlds: answers, and radii by trying every attack."""

from __future__ import annotations

import random

import numpy as np
import pytest

from robustrag_integrations import ConsensusAggregation, KeywordAggregation, MajorityVoting
from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from tests.helpers.naive_algorithms import (
    enumerated_radius,
    naive_consensus,
    naive_decoding_aggregation,
    naive_keywords,
    naive_list,
    naive_voting,
)
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel, split

UNKNOWN = "I don't know"
SETS = [{*words.split()} for words in ["a", "b", "new", "a b", "a new", "b new", "a b new"]]


@pytest.mark.parametrize("seed", range(60))
def test_consensus_is_the_whole_answer_that_most_sources_give(seed: int) -> None:
    rng = random.Random(seed)
    least, majority = rng.choice([1, 2, 2, 3]), rng.random() < 0.4
    replies = [rng.choice(["oslo", "oslo", "oslo", "bern", "rome", None]) for _ in range(rng.randint(1, 6))]
    defense = ConsensusAggregation(
        ScriptedModel(lambda text: text),
        min_support=least,
        agreement="majority" if majority else "plurality",
        prompts=BARE,
        quorum=0,
    )
    answer = defense.answer("q", [reply or UNKNOWN for reply in replies])

    def naive(said: list[str | None]) -> str | None:
        return naive_consensus(said, least, majority=majority)

    if answer.sole_source is not None and answer.evidence["support"] < least:  # for people alone
        answer = answer.for_prompt()
    assert (None if answer.abstained else answer.text) == naive(replies)
    assert answer.radius == enumerated_radius(naive, replies, ["oslo", "bern", "rome", "new", None])


@pytest.mark.parametrize("seed", range(60))
def test_voting_takes_the_option_of_most_sources_and_tells_a_tie(seed: int) -> None:
    rng = random.Random(seed)
    votes = [rng.choice(["A", "A", "A", "B", "C", None]) for _ in range(rng.randint(1, 6))]
    names = {"A": "oslo", "B": "bern", "C": "rome"}
    defense = MajorityVoting(ScriptedModel(lambda text: text), prompts=BARE_CHOICES, quorum=0)
    answer = defense.answer("q", [vote or UNKNOWN for vote in votes], choices=[*names.values()])
    expected = naive_voting(votes)
    assert answer.abstained == (expected is None)
    assert answer.radius == enumerated_radius(naive_voting, votes, ["A", "B", "C", None])
    if expected is not None:
        assert answer.text == names[expected]
    elif any(votes):
        assert answer.text.startswith("The sources say:\n")


@pytest.mark.parametrize("seed", range(60))
def test_a_list_is_the_items_that_more_than_half_of_the_lists_give(seed: int) -> None:
    rng = random.Random(seed)
    least, common = rng.choice([1, 2, 2, 3]), rng.choice([{"a"}, {"a", "b"}])
    replies = [rng.choice([common, common, common, {"a"}, {"b"}, None]) for _ in range(rng.randint(1, 5))]
    defense = ConsensusAggregation(
        ScriptedModel(lambda text: text), task="list", min_support=least, prompts=BARE, quorum=0
    )
    answer = defense.answer("q", ["\n".join(sorted(reply)) if reply else UNKNOWN for reply in replies])

    def naive(said: list[set[str] | None]) -> set[str]:
        return naive_list(said, least)

    assert {claim.text for claim in answer.claims} == naive(replies)
    assert answer.radius == enumerated_radius(naive, replies, [*SETS, None])


@pytest.mark.parametrize("seed", range(60))
def test_keyword_aggregation_is_algorithm_1(seed: int) -> None:
    rng = random.Random(seed)
    alpha, beta = rng.choice(["0", "0.1", "0.3", "0.34", "0.5", "1"]), rng.choice([1, 2, 3, 5])
    common = rng.choice([{"a"}, {"a", "b"}])
    replies = [rng.choice([common, common, common, {"b"}, {"a"}, None]) for _ in range(rng.choice([3, 5, 6]))]
    defense = KeywordAggregation(
        ScriptedModel(lambda text: text), alpha=float(alpha), beta=beta, extractor=split, prompts=BARE, quorum=0
    )
    answer = defense.answer("q", [" ".join(sorted(reply)) if reply else UNKNOWN for reply in replies])

    def naive(said: list[set[str] | None]) -> set[str]:
        return naive_keywords(said, alpha, beta)

    kept = naive(replies)
    assert answer.text == f"kept[{', '.join(sorted(kept))}] q" if kept else answer.abstained
    assert answer.radius == enumerated_radius(naive, replies, [set(), *SETS, None])


@pytest.mark.parametrize("seed", range(60))
def test_decoding_aggregation_is_algorithm_2(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: dict[tuple[str, tuple[int, ...]], list[float]] = {}

    def next_token(text: str, prefix) -> list[float]:
        # Eighths add up without rounding, so that the naive sums are exact as well.
        return rows.setdefault((text, tuple(prefix)), [int(n) / 8 for n in rng.multinomial(8, [0.25] * 4)])

    def distribution(text: str, prefix: tuple[int, ...]):
        return None if text == "silent" and prefix == () else next_token(text, prefix)

    passages = [*(f"g{j}" for j in range(int(rng.integers(1, 6)))), *["silent"] * int(rng.integers(0, 2))]
    eta = float(rng.choice([0, 0.25, 1]))
    defense = DecodingAggregation(ScriptedDecodingModel(distribution), eta=eta, max_new_tokens=6, prompts=BARE)
    expected = naive_decoding_aggregation(
        passages, lambda p: 1.0 if p == "silent" else 0.0, next_token, gamma=0.99, eta=eta, limit=6, end=0
    )
    assert defense.answer("q", passages).evidence["tokens"] == expected
