"""Rotations of places: those of the model's own code, and of a place the same whatever else is read."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations.models.local.turns import Turns, turned  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402

NUMBERS = torch.zeros(1)
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}


def rotations(**settings: Any) -> Any:
    return tiny_model("llama", **settings).model.rotary_emb


def test_heads_are_rotated_as_by_the_models_own_code() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    module, places = rotations(), torch.tensor([[3, 4, 300], [0, 7, 1000]])
    query, key = torch.randn(2, 4, 3, 16), torch.randn(2, 2, 3, 16)
    ours = Turns(module).of(NUMBERS, places)
    wanted = apply_rotary_pos_emb(query, key, *module(NUMBERS, places))
    for numbers, expected in zip((query, key), wanted, strict=True):
        assert torch.allclose(turned(numbers, ours), expected, atol=1e-5)


@pytest.mark.parametrize("head_dim", [6, 16, 24])
def test_a_place_has_the_same_bits_whatever_was_asked_before_and_beside_it(head_dim: int) -> None:
    module, known = rotations(head_dim=head_dim), []
    for before in ([], [2], [255], [256, 900], [5000]):
        turns = Turns(module)
        if before:
            turns.of(NUMBERS, torch.tensor([before]))
        both = turns.of(NUMBERS, torch.tensor([[5, 255, *before]]))
        known.append(torch.cat([factors[0, 0, :2] for factors in both]))
    assert all(torch.equal(factors, known[0]) for factors in known)


def test_frequencies_that_follow_the_longest_row_are_worked_out_in_every_pass() -> None:
    module = rotations(max_position_embeddings=64, rope_parameters=DYNAMIC)
    turns, short = Turns(module), torch.tensor([[1, 2, 3]])
    cos, _ = turns.of(NUMBERS, short)
    assert torch.equal(cos[:, 0], module(NUMBERS, short)[0])
    turns.of(NUMBERS, torch.tensor([[500]]))
    again, _ = turns.of(NUMBERS, short)
    assert torch.equal(again, cos)
