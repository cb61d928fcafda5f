"""The real plans against the paper's pseudocode, written naively in `naive_algorithms.py`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from robustrag_integrations import ConsensusAggregation, KeywordAggregation
from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.defenses.keyword.threshold import Tally, Threshold
from tests.helpers.naive_algorithms import (
    UNKNOWN,
    enumerated_consensus_radius,
    enumerated_keyword_radius,
    naive_consensus,
    naive_decoding_aggregation,
    naive_keyword_aggregation,
)
from tests.helpers.scripted import BARE, ScriptedDecodingModel, ScriptedModel, split


@pytest.mark.parametrize("seed", range(60))
def test_keyword_aggregation_is_algorithm_1(seed: int) -> None:
    rng = random.Random(seed)
    alpha, beta = rng.choice(["0", "0.1", "0.3", "0.5", "1"]), rng.choice([1, 2, 3, 5])
    responses = [rng.choice(["a", "a b", "b c", "c", "d e", UNKNOWN, f"well, {UNKNOWN}."]) for _ in range(10)]
    defense = KeywordAggregation(
        ScriptedModel(lambda text: text),
        alpha=float(alpha),
        beta=beta,
        extractor=split,
        prompts=BARE,
        disagreement="abstain",
    )

    def final(kept: list[str]) -> str:
        return f"kept[{', '.join(kept)}] q"

    assert defense.answer("q", responses).text == naive_keyword_aggregation(responses, split, alpha, beta, final)


@pytest.mark.parametrize("seed", range(60))
def test_the_keyword_radius_is_what_enumerating_all_sets_of_groups_gives(seed: int) -> None:
    rng = random.Random(seed)
    alpha, beta = rng.choice(["0.1", "0.3", "0.34", "0.5", "1"]), rng.choice([1, 2, 3, 5])
    common = rng.choice(["a", "a b"])
    said = [rng.choice([common, common, common, "b", "c a", None]) for _ in range(rng.choice([3, 5, 7, 8]))]
    sets = [None if s is None else set(s.split()) for s in said]
    tally = Tally.of(sets, Threshold.of(float(alpha), beta))
    assert tally.radius() == enumerated_keyword_radius(sets, alpha, beta)


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


def test_a_threshold_of_three_tenths_of_ten_is_three_and_loses_no_keyword() -> None:
    # In floats 0.1 * 3 > 0.3 and 0.7 * 10 > 7: a keyword with exactly the needed count would be lost.
    for alpha, n in [(0.3, 10), (0.7, 10), (0.1, 30), (0.29, 100), (0.57, 100)]:
        needed = round(alpha * n)
        sets = [{"w"}] * needed + [{"x"}] * (n - needed)
        assert "w" in Tally.of(sets, Threshold.of(alpha, 10**6)).kept


@pytest.mark.parametrize("seed", range(60))
def test_consensus_is_the_count_of_whole_answers(seed: int) -> None:
    rng = random.Random(seed)
    least, majority = rng.choice([1, 2, 2, 3]), rng.random() < 0.4
    replies = [rng.choice(["oslo", "oslo", "oslo", "bern", "rome", None]) for _ in range(rng.randint(1, 6))]
    model = ScriptedModel(lambda text: {"none": UNKNOWN}.get(text, text))
    defense = ConsensusAggregation(
        model, min_support=least, agreement="majority" if majority else "plurality", prompts=BARE, quorum=0
    )
    answer = defense.answer("q", [reply or "none" for reply in replies])
    expected = naive_consensus(replies, least, majority=majority)
    if answer.sole_source is not None and answer.evidence["support"] < least:  # for people alone
        answer = answer.for_prompt()
    assert (None if answer.abstained else answer.text) == expected
    assert answer.radius == enumerated_consensus_radius(replies, least, majority=majority)
