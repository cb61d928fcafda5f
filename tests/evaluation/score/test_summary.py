"""Lines say what rows say: nothing is dropped in silence, and no estimate passes for a certificate."""

from __future__ import annotations

import pytest

from robustrag_integrations.evaluation.score.summary import EMPTY, summarise
from tests.evaluation.rows import PIA, certificate, failed, row

HEADER = {"schema": "robustrag/eval-run/3", "config": {}, "versions": {}}


def test_one_line_per_setup_and_attack_in_the_order_of_the_rows() -> None:
    rows = [
        HEADER,
        row(1),
        row(2),
        row(1, attack=PIA),
        row(1, setup="keyword alpha=0.5"),
        row(1, attack={**PIA, "rank": "3"}),
    ]
    found = summarise(rows)
    assert [(line.setup, str(line.attack), line.n) for line in found] == [
        ("keyword", "none", 2),
        ("keyword", "pia @first k'=1", 1),
        ("keyword alpha=0.5", "none", 1),
        ("keyword", "pia @3 k'=1", 1),
    ]
    assert found[0].settings == {"alpha": 0.3}


def test_rates_are_means_over_answered_questions() -> None:
    wrong = {"correct": 0.0, "hijacked": True}
    rows = [
        row(1, attack=PIA),
        row(2, attack=PIA, scores=wrong),
        row(3, attack=PIA, scores={"hijacked": True, "both": True}),
        row(4, attack=PIA, scores={"correct": 0.0, "abstained": True}),
        failed(5, attack=PIA),
    ]
    [line] = summarise(rows)
    assert (line.n, line.failed, line.errors) == (4, 1, {"ModelError: timed out": 1})
    assert (line.accuracy.mean, line.asr.mean, line.both.mean, line.abstention.mean) == (0.5, 0.5, 0.25, 0.25)
    assert line.accuracy.n == 4
    assert line.accuracy.low is not None
    assert line.accuracy.high is not None
    assert 0 <= line.accuracy.low < 0.5 < line.accuracy.high <= 1


def test_the_attackers_answers_with_a_radius_and_from_a_sole_source_are_counted() -> None:
    lie = {"correct": 0.0, "hijacked": True}
    rows = [row(1, attack=PIA, scores=lie), row(2, attack=PIA, scores=lie, answer={"radius": 0, "sole_source": "a"})]
    rows += [row(3, attack=PIA), row(4, attack=PIA, scores={"hijacked": None})]
    [line] = summarise(rows)
    assert (line.asr.n, line.asr_held.n, line.asr_sole) == (3, 3, 1)
    assert line.asr_held.mean == pytest.approx(1 / 3)


def test_abstentions_that_tell_the_right_answer_are_a_share_of_all_answers() -> None:
    told = {"correct": 0.0, "abstained": True, "told": True}
    [line] = summarise([row(1), row(2, scores=told), row(3, scores={**told, "told": False}), row(4)])
    assert (line.accuracy.mean, line.abstention.mean, line.told.mean) == (0.5, 0.5, 0.25)


def test_right_and_wrong_answers_that_hold_are_shares_of_all_answers() -> None:
    wrong, silent = {"correct": 0.0}, {"correct": 0.0, "abstained": True}
    rows = [row(1), row(2, answer={"radius": 9}, scores=silent), row(3, answer={"radius": 1}, scores=wrong)]
    [line] = summarise(rows)
    assert [round(share.mean or 0, 3) for share in (*line.held, line.held_wrong)] == [0.333, 0.333, 0, 0.333]
    [line] = summarise([row(1, task="long_form", scores={"correct": None})])
    assert (line.held, line.held_wrong) == ((), EMPTY)


def test_certificates_are_averaged_per_attacker_and_size() -> None:
    rows = [
        row(1, certificates=[certificate(1.0), certificate(1.0, 2), certificate(0.0, 1, "modification")]),
        row(2, certificates=[certificate(0.0), certificate(0.0, 2), certificate(0.0, 1, "modification")]),
    ]
    [line] = summarise(rows)
    assert [(c.attack, c.corruption_size, c.score.mean) for c in line.certified] == [
        ("injection", 1, 0.5),
        ("injection", 2, 0.5),
        ("modification", 1, 0.0),
    ]


def test_an_undecided_certificate_counts_as_nothing() -> None:
    undecided = certificate(0.9, certified=False)
    [line] = summarise([row(1, certificates=[undecided]), row(2, certificates=[certificate(1.0)])])
    [found] = line.certified
    assert (found.score.mean, found.score.n, found.undecided) == (0.5, 2, 1)


def test_long_answers_have_judges_scores_in_place_of_accuracies() -> None:
    rows = [
        row(i, task="long_form", scores={"correct": j / 100, "judge": j}, certificates=[certificate(j / 2)])
        for i, j in enumerate([80.0, 40.0])
    ]
    [line] = summarise(rows)
    assert (line.judge.mean, line.judge.n, line.accuracy) == (60.0, 2, EMPTY)
    assert line.certified[0].score.mean == 30.0
    [line] = summarise([row(1, task="long_form", scores={"correct": None, "judge": None}, attack=PIA)])
    assert (line.judge, line.n) == (EMPTY, 1)


def test_rows_out_of_a_cache_and_first_rows_tell_nothing_about_time() -> None:
    warming, cached = {"seconds": 60.0, "first": True}, {"seconds": 0.001, "cached_calls": 11}
    [line] = summarise([row(1, timing=warming), row(2), row(3, timing=cached)])
    assert line.seconds == 2.0
    [line] = summarise([row(1, timing=cached)])
    assert line.seconds is None
