"""The order in which products sum up, seen where rounding hides it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.nn import functional  # noqa: E402
from torch.overrides import wrap_torch_function  # noqa: E402

from robustrag_integrations.models.local.isolation import Summation  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import local, moved  # noqa: E402


def one_after_another(rows: Any, weight: Any, bias: Any = None) -> Any:
    """A product whose rows behind the eighth sum up from the back; all in single precision."""
    terms = rows.float()[..., None, :] * weight.float()
    total = torch.zeros(terms.shape[:-1])
    whole = len(rows) // 8 * 8
    columns = range(weight.shape[1])
    for column, other in zip(columns, reversed(columns), strict=True):
        total[:whole] += terms[:whole, ..., column]
        total[whole:] += terms[whole:, ..., other]
    return total.to(rows.dtype)


one_after_another.__name__ = "linear"


def test_another_order_of_summation_shows_where_half_precision_rounds_it_away() -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(1, 1, 64).bfloat16().expand(12, -1, -1), torch.randn(40, 64).bfloat16()
    product = one_after_another(rows, weight)
    assert torch.equal(product, product[:1].expand_as(product))
    (sums := Summation(12)).__torch_function__(one_after_another, (), (rows, weight))
    [left] = sums.left.values()
    assert torch.equal(left[:8], left[:1].expand(8, -1))
    assert torch.equal(left[8:], left[8:9].expand(4, -1))
    assert not torch.equal(left[0], left[8])


@pytest.mark.parametrize("size", [2, 15, 64])
def test_sums_all_but_cancel_and_the_product_itself_is_as_it_was(size: int) -> None:
    torch.manual_seed(0)
    rows, weight, bias = torch.randn(4, 1, size), torch.randn(6, size), torch.randn(6)
    with (sums := Summation(4)):
        linear = functional.linear(rows, weight, bias)
        product = rows[:, 0] @ weight.T
        added = torch.addmm(bias, rows[:, 0], weight.T)
        torch.ones(4, 1) @ torch.ones(1, 3)  # sums of one number have no order
        torch.ones(2, 5) @ torch.ones(5, 3)  # of other rows
    assert torch.equal(linear, functional.linear(rows, weight, bias))
    assert torch.equal(product, rows[:, 0] @ weight.T)
    assert torch.equal(added, torch.addmm(bias, rows[:, 0], weight.T))
    assert len(sums.left) == 3
    for left in sums.left.values():
        assert left.shape == (4, 6)
        assert left.abs().max() <= 64 * size * 2.0**-18


def test_steps_are_padded_to_where_all_rows_sum_up_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "linear", wrap_torch_function(lambda *args: args)(one_after_another))
    functional.linear.__name__ = "linear"
    model = local(tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1))
    assert moved(model, 11) == (0.0, 0.0)
    [found] = model._reader.probe.results
    assert (found.rows, found.padded, found.exact) == (11, 16, True)
