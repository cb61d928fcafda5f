"""One decoding step: fixed tie-breaks, exact sums, rows that are no distributions, and text shown as it settles."""

from __future__ import annotations

import numpy as np
import pytest

from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    choose_token,
    fixed_point,
    most_probable,
    step_radius,
)
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer, spelt
from tests.helpers.scripted import ScriptedDecodingModel


def scores(*rows: list[float]) -> np.ndarray:
    return fixed_point(np.array(rows))


def test_tied_top_tokens_are_ranked_by_id_and_fall_back_to_the_no_retrieval_token() -> None:
    choice = choose_token(scores([0.2, 0.4, 0.4]), no_retrieval_token=0, eta=0)
    assert (choice.top, choice.runner_up, choice.gap, choice.token, choice.indecisive) == (1, 2, 0, 0, True)


def test_sums_do_not_depend_on_the_order_of_rows_even_where_floats_do() -> None:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(50), size=40).astype(np.float32)
    gaps = {choose_token(fixed_point(rows[rng.permutation(40)]), 0, 0).gap for _ in range(20)}
    assert len(gaps) == 1


def test_a_row_that_is_no_distribution_counts_nothing_and_a_broken_model_is_an_error() -> None:
    rows = fixed_point(np.array([[float("nan"), 1.0], [float("inf"), 0.0], [-1.0, 2.0], [0.25, 0.75]]))
    assert rows.tolist() == [[0, 0], [0, 0], [0, 0], [ONE // 4, 3 * ONE // 4]]
    with pytest.raises(ValueError, match="not even without passages"):
        most_probable(np.array([0.1, float("nan")]))


def test_the_slack_costs_radius_only_at_the_boundary() -> None:
    rows = scores(*[[1.0, 0.0]] * 5)
    choice = choose_token(rows, 1, 0)
    assert step_radius(rows, choice, 1, eta=0, slack=0, limit=4) == 2
    assert step_radius(rows, choice, 1, eta=0, slack=ONE, limit=4) == 1


def test_a_large_vocabulary_gives_the_same_radius_as_the_formula_written_out() -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        rows = fixed_point(rng.dirichlet(np.full(9000, 0.001), size=6) * 0.3 + np.eye(9000)[7] * 0.7)
        choice = choose_token(rows, 3, 0)
        lead = rows[:, [choice.top]] - rows
        expected = 0
        for r in range(1, 6):
            worst = lead.sum(0) - np.sort(np.maximum(lead, 0), axis=0)[-r:].sum(0) - r * ONE
            if not np.all(np.delete(worst, choice.top) > 0):
                break
            expected = r
        assert step_radius(rows, choice, 3, eta=0, slack=0, limit=5) == expected


class Pieces:
    """A codec over given byte strings; undecodable ends show as replacement characters, as in tokenizers."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def decode(self, tokens) -> str:
        return b"".join(self._pieces[t] for t in tokens).decode(errors="replace")

    def is_end(self, token: int) -> bool:
        return False


def shown(codec: Pieces, stop: tuple[str, ...], count: int) -> tuple[list[str], str, bool]:
    text = IncrementalDetokenizer(codec, stop)
    pieces = [text.add(t) for t in range(count) if not text.stopped]
    pieces.append(text.finish())
    return pieces, text.shown, text.stopped


def test_half_a_character_is_held_back_until_it_is_whole() -> None:
    pieces, text, _ = shown(Pieces(b" Sk", b"\xc3", b"\xa5ne"), (), 3)
    assert (pieces, text) == (["Sk", "", "åne", ""], "Skåne")


def test_a_stop_string_is_never_shown_not_even_its_beginning() -> None:
    pieces, text, stopped = shown(Pieces(b" Oslo", b"\n", b"\nQuestion", b"x"), ("\n\n",), 4)
    assert (text, stopped) == ("Oslo", True)
    assert "".join(pieces) == "Oslo"


def test_the_evidence_spells_every_step_its_best_rival_and_where_the_model_answered_for_itself() -> None:
    def next_letter(text: str, prefix: tuple[int, ...]) -> list[float]:
        if prefix == (1,):  # the sources are split between b and c; without passages it is d
            return {"": [0, 0, 0, 0, 1], "x": [0, 0, 0.75, 0.25, 0], "y": [0, 0, 0.25, 0.5, 0.25]}[text]
        return [0.75, 0, 0.25, 0, 0] if prefix else [0, 0.75, 0, 0, 0.25]

    answer = DecodingAggregation(ScriptedDecodingModel(next_letter), eta=0.5).answer("q", ["x", "y"])
    assert answer.text == "ad"
    assert answer.evidence["words"] == ["a", "d", "<end>"]
    assert answer.evidence["rivals"] == ["d", "b", "b"]
    assert answer.evidence["gaps"] == [1.0, 0.25, 1.0]


def test_a_token_reads_as_it_does_behind_others() -> None:
    codec = Pieces(b" Sk", b"\xc3", b"\xa5ne")
    assert [spelt(codec, range(t), t) for t in range(3)] == [" Sk", "\ufffd", "ne"]
