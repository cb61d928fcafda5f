"""The order in which products sum up, seen where rounding hides it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.nn import functional  # noqa: E402

from robustrag_integrations.models.local.isolation import sums_differ  # noqa: E402
from robustrag_integrations.models.local.language_model import CausalLM  # noqa: E402
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


def test_another_order_of_summation_shows_where_half_precision_rounds_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(1, 1, 64).bfloat16().expand(12, -1, -1), torch.randn(40, 64).bfloat16()
    product = one_after_another(rows, weight)
    assert torch.equal(product, product[:1].expand_as(product))
    lm = CausalLM(tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1))
    monkeypatch.setattr(functional, "linear", one_after_another)
    assert sums_differ(lm, 12)
    assert not sums_differ(lm, 16)


def test_every_kind_of_product_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: set[tuple[int, ...]] = set()
    real = torch.addmm
    monkeypatch.setattr(torch, "addmm", lambda bias, a, b: tried.add(tuple(b.shape)) or real(bias, a, b))
    sums_differ(CausalLM(tiny_model("gpt2", dtype=torch.bfloat16)), 4)
    assert tried == {(64, 192), (64, 64), (64, 256), (256, 64)}


def test_steps_are_padded_to_where_all_rows_sum_up_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "linear", one_after_another)
    model = local(tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1))
    assert moved(model, 11) == (0.0, 0.0)
    [found] = model._reader.probe.results
    assert (found.rows, found.padded, found.exact) == (11, 16, True)
