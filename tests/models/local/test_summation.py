"""The order in which products sum up, seen where rounding hides it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations.models.local.step_shapes import find_step_shapes  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.overrides import wrap_torch_function  # noqa: E402

from robustrag_integrations.models.local.causal_lm import CausalLM  # noqa: E402
from robustrag_integrations.models.local.summation import Summation  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402


def one_after_another(rows: Any, weight: Any, bias: Any = None) -> Any:
    """A product that sums up in single precision, from the front in small steps and from the back in large ones."""
    terms = rows.float()[..., None, :] * weight.float()
    total = torch.zeros(terms.shape[:-1])
    columns = range(weight.shape[1])
    for column in columns if len(rows) < 8 else reversed(columns):
        total = total + terms[..., column]
    return total.to(rows.dtype)


one_after_another.__name__ = "linear"


def left_by(sums: Summation, kinds: list[int], func: Any, *args: Any) -> Any:
    sums.begin(kinds)
    sums.__torch_function__(func, (), args)
    [left] = sums.found.values()
    return left


def test_another_order_of_summation_shows_where_half_precision_rounds_it_away() -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(8, 1, 64).bfloat16(), torch.randn(40, 64).bfloat16()
    assert torch.equal(one_after_another(rows[:4], weight), one_after_another(rows, weight)[:4])
    few = left_by(sums := Summation(2), [0, 1, 0, 1], one_after_another, rows[:4], weight)
    many = left_by(sums, [0, 1, 1, 0, 0, 0, 0, 0], one_after_another, rows, weight)
    assert torch.equal(few[0], few[2])
    assert torch.equal(many[1], many[2])
    assert not torch.equal(few[:2], many[:2])
    again = left_by(sums, [1, 0, 0, 0], one_after_another, rows[:4], weight)
    assert torch.equal(again[:2], few[[1, 0]])


@pytest.mark.parametrize("size", [2, 15, 64])
def test_sums_all_but_cancel_and_the_product_itself_is_as_it_was(size: int) -> None:
    torch.manual_seed(0)
    rows, weight, bias = torch.randn(4, 1, size), torch.randn(6, size), torch.randn(6)
    with (sums := Summation(4)):
        sums.begin([0, 1, 2, 3])
        linear = functional.linear(rows, weight, bias)
        product = rows[:, 0] @ weight.T
        added = torch.addmm(bias, rows[:, 0], weight.T)
    assert torch.equal(linear, functional.linear(rows, weight, bias))
    assert torch.equal(product, rows[:, 0] @ weight.T)
    assert torch.equal(added, torch.addmm(bias, rows[:, 0], weight.T))
    assert len(sums.found) == 3
    for left in sums.found.values():
        assert left.shape == (4, 6)
        assert left.abs().max() <= 64 * size * 2.0**-18


def test_products_of_other_kinds_are_not_taken_for_tried() -> None:
    with (sums := Summation(1)):
        sums.begin([0, 0])
        torch.ones(2, 5, 1) @ torch.ones(2, 1, 3)  # sums of one number have no order
        assert not sums.found
        with pytest.raises(NotImplementedError, match="by bmm are not tried"):
            torch.bmm(torch.ones(2, 1, 4), torch.ones(2, 4, 3))
        with pytest.raises(NotImplementedError, match=r"by matmul of \(2, 1, 4\) are not tried"):
            torch.ones(2, 1, 4) @ torch.ones(2, 4, 3)


def test_numbers_of_rows_that_sum_up_in_another_order_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1)
    monkeypatch.setattr(functional, "linear", wrap_torch_function(lambda *args: args)(one_after_another))
    functional.linear.__name__ = "linear"
    lm = CausalLM(network)
    assert find_step_shapes(lm, 32).rows == (8, 16, 32)
