"""The figures of docs/scale.md: what a day is said to ask for is what the methods' own plans ask for."""

from __future__ import annotations

import pytest

from benchmarks.scale.__main__ import fleet_table, queue_table
from benchmarks.scale.demand import A_DAY, PRICES, WAYS, Demand, demand, spent_table
from benchmarks.scale.queues import queued
from benchmarks.scale.workers import jobs, measured
from benchmarks.scale.world import Scene, Simulated
from robustrag_integrations import ConsensusAggregation, KeywordAggregation

STEADY = Scene(sigma=0.0, slow=0.0)  # every call takes 1
SHORT = Scene(passage_tokens=20)


def way(title: str, scene: Scene = SHORT, *, cache_from: int = 1024, questions: int = 20) -> Demand:
    return demand(next(w for w in WAYS if w.title == title), questions, scene, cache_from=cache_from)


def test_calls_and_rounds_are_those_of_the_plans() -> None:
    assert (way("vanilla").calls, way("vanilla").rounds) == (1, 1)
    assert (way("keyword").calls, way("keyword").rounds) == (11, 2)
    assert way("keyword, groups of 5").calls == 3
    assert (way("consensus").calls, way("consensus").rounds) == (10, 1)


def test_time_is_a_call_per_round() -> None:
    steady = Scene(passage_tokens=20, sigma=0.0, slow=0.0)
    assert set(way("keyword", steady).times) == {2.0}
    assert set(way("consensus", steady).times) == {1.0}


def test_an_early_decision_does_not_wait_for_a_slow_source() -> None:
    slow = Scene(passage_tokens=20, right=1.0, silent=0.0, slow=0.1, slowness=1000.0, sigma=0.0)
    waited, early = way("consensus", slow), way("consensus, early", slow)
    assert max(waited.times) == 1000.0
    assert max(early.times) == 1.0
    assert early.calls == 10
    assert set(early.decided_after) < set(range(1, 10))
    assert early.busy < waited.busy


def test_waves_send_fewer_calls() -> None:
    assert way("consensus, early, waves of 4").calls < way("consensus, early").calls == 10


def test_a_beginning_is_cached_from_the_second_question_on_and_only_if_it_is_long_enough() -> None:
    scene, model = SHORT, Simulated(SHORT, 1)
    defense = KeywordAggregation(model)
    model.begin(0)
    defense.answer(scene.question(0), scene.texts(0))
    first = sum(u.cached or 0 for u in model.spent)
    model.begin(1)
    defense.answer(scene.question(1), scene.texts(1))
    assert 0 < first < sum(u.cached or 0 for u in model.spent)
    assert way("keyword").usage[1] == 0


def test_the_simulated_model_answers_as_the_sources_say() -> None:
    scene = Scene(passage_tokens=20, right=1.0, silent=0.0)
    model = Simulated(scene)
    model.begin(3)
    answer = ConsensusAggregation(model).answer(scene.question(3), scene.texts(3))
    assert answer.text == scene.choices(3)[0]
    assert answer.radius > 0


def test_money_is_that_of_the_tokens() -> None:
    one = Demand("x", 1, 1, (1000.0, 400.0, 10.0), 0.0, 1.0, (1.0, 1.0), 1.0, (1,), 100.0)
    expected = (600 * PRICES.input + 400 * PRICES.cached_input + 10 * PRICES.output) / 1e6 * A_DAY
    assert one.cost() == pytest.approx(expected)


def test_a_queue_with_places_to_spare_makes_nobody_wait() -> None:
    seen = queued(50.0, 10, [10], final=True, load=0.4, questions=2000, scene=STEADY)
    assert (seen.p50, seen.p99, seen.longest) == (pytest.approx(2.0), pytest.approx(2.0), 0)
    assert seen.places == pytest.approx(50 * 11 / 0.4, rel=0.01)


def test_a_queue_that_is_overfull_grows() -> None:
    seen = queued(50.0, 10, [10], final=False, load=1.3, questions=2000, scene=STEADY)
    assert seen.longest > 500
    assert seen.p99 > 3


def test_cancelled_calls_give_their_places_back() -> None:
    seen = queued(50.0, 10, [1], final=False, load=0.5, questions=2000, scene=Scene(slow=0.3, slowness=1e6))
    assert seen.p99 < 2


def test_the_tables_have_a_row_per_way() -> None:
    found = [way("keyword"), way("consensus")]
    assert spent_table(found).count("\n") == 3
    assert "calls a second | 3,819 | 3,472 |" in fleet_table(found)
    assert queue_table(found, 500).count("\n") == 7


def test_rows_come_back_from_workers(tmp_path: object) -> None:
    pytest.importorskip("ray")
    todo = jobs("python:tests.evaluation.light:answer", 6, str(tmp_path))
    pace, first = measured(todo, 2)
    assert len(todo) == 6
    assert pace > 0 < first
