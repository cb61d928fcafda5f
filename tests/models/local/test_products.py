"""Products with weights: what torch's own give, by the kernel that is the fastest on a processor."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from robustrag_integrations.models.local import products  # noqa: E402

PROCESSORS = ["amd", "amd without AVX-512", "intel", ""]


@pytest.fixture(params=PROCESSORS)
def maker(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(products, "processor", lambda: request.param.partition(" ")[0])
    monkeypatch.setattr(products, "_has_avx512", lambda: "without" not in request.param)
    monkeypatch.setattr(products, "_LARGE", 48 * 80)
    monkeypatch.setattr(products, "_WORK", 6 * 48 * 80)
    return str(request.param)


def kernels_used(monkeypatch: pytest.MonkeyPatch, *, rows: int, **choice: Any) -> str:
    """Which kernel computes a product of so many rows."""
    used = ["torch"]
    monkeypatch.setattr(products, "_transposed", lambda *args: used.append("columns") or functional.linear(*args))
    monkeypatch.setattr(products, "by_onednn", lambda *args: used.append("onednn") or functional.linear(*args))
    products.linear(torch.randn(rows, 48), torch.randn(80, 48), **choice)
    return used[-1]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 11, 32, 33, 100])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_torch_whatever_their_shape(maker: str, rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(48, 80, bias=bias)
    inputs = torch.randn(rows, 1, 48)
    with torch.inference_mode():
        wanted = layer(inputs)
        with products.Products(products.linear):
            got = layer(inputs)
    assert got.shape == wanted.shape
    assert torch.allclose(got, wanted, atol=1e-5)
    assert got.is_contiguous()


def test_prompts_of_all_lengths_take_few_shapes_where_each_is_compiled(maker: str) -> None:
    large = 2**20 if maker == "amd without AVX-512" else 1
    filled = [products.whole_tokens(tokens, large) for tokens in range(1, 8193)]
    if large > 1:
        assert products.whole_tokens(33, large - 1) == 33
    if maker.startswith("amd") and products._has_onednn():
        assert len(set(filled)) < 200
        assert all(tokens <= most <= tokens * 17 / 16 for tokens, most in enumerate(filled, 1))
        assert filled == sorted(filled)
    else:
        assert filled == list(range(1, 8193))


def test_on_amd_products_that_are_worth_it_are_onednns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "processor", lambda: "amd")
    monkeypatch.setattr(products, "_has_avx512", lambda: True)
    monkeypatch.setattr(products, "_has_onednn", lambda: True)
    monkeypatch.setattr(products, "_WORK", 6 * 48 * 80)
    assert [kernels_used(monkeypatch, rows=rows) for rows in (2, 5, 6, 100)] == ["torch", "torch", "onednn", "onednn"]
    monkeypatch.setattr(products, "_WORK", 1)
    assert [kernels_used(monkeypatch, rows=rows) for rows in (1, 2, 3)] == ["torch", "torch", "onednn"]
    assert kernels_used(monkeypatch, rows=1, whole=products._FOR_LONE_ROWS) == "onednn"  # as the whole is
    with torch.backends.mkldnn.flags(enabled=False):
        assert kernels_used(monkeypatch, rows=100) == "torch"
    monkeypatch.setattr(products, "_has_avx512", lambda: False)
    assert kernels_used(monkeypatch, rows=100) == "torch"
    monkeypatch.setattr(products, "_OUT_OF_CACHE", 48 * 80)
    assert kernels_used(monkeypatch, rows=100) == "onednn"
    assert kernels_used(monkeypatch, rows=2, whole=products._FOR_LONE_ROWS) == "torch"


def test_on_intel_large_products_of_few_rows_are_weights_times_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_mkl_likes_columns", lambda: True)
    monkeypatch.setattr(products, "_onednn_is_faster", lambda numbers: False)
    assert kernels_used(monkeypatch, rows=5) == "torch"  # so small a weight stays in the processor's cache
    monkeypatch.setattr(products, "_LARGE", 48 * 80)
    found = [kernels_used(monkeypatch, rows=rows) for rows in (4, 5, 32, 33)]
    assert found == ["torch", "columns", "columns", "torch"]


def test_passes_of_different_numbers_of_rows_can_have_one_kernel(maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that questions share must have the same bits however many take part."""
    found = {kernels_used(monkeypatch, rows=rows, as_for=2**30) for rows in (1, 4, 8, 32, 192)}
    assert found == ({"onednn"} if maker == "amd" and products._has_onednn() else {"torch"})


@pytest.mark.parametrize(
    "others",
    [
        lambda: (torch.zeros(8, 48, dtype=torch.bfloat16), torch.zeros(80, 48, dtype=torch.bfloat16)),
        lambda: (torch.zeros(8, 48, device="meta"), torch.zeros(80, 48, device="meta")),
    ],
    ids=["half precision", "another device"],
)
def test_other_products_stay_torchs_own(others: Any) -> None:
    def way(*args: Any) -> Any:
        raise AssertionError("not a product in single precision on a CPU")

    inputs, weight = others()
    with products.Products(way):
        assert functional.linear(inputs, weight).shape == (8, 80)


def test_mixed_precision_of_the_user_stays() -> None:
    with products.Products(products.linear), torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.linear(torch.zeros(8, 48), torch.zeros(80, 48)).dtype == torch.bfloat16


def test_looking_at_every_call_is_left_out_where_it_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    way = partial(products.linear)
    small, large = torch.zeros(400, 64), torch.zeros(4000, 1024)
    monkeypatch.setattr(products, "_onednn_is_faster", lambda numbers: True)
    for avx512 in (True, False):
        monkeypatch.setattr(products, "_has_avx512", lambda: avx512)  # noqa: B023 - asked at once
        lone = isinstance(products.products(way, 1, 1, torch.zeros(8, 2048)), products.Products)
        looks = [
            isinstance(products.products(way, n, 1, e), products.Products) for e in (small, large) for n in (1, 100)
        ]
        assert lone == avx512
        assert looks == [False, False, False, True]
    monkeypatch.setattr(products, "_onednn_is_faster", lambda numbers: False)
    monkeypatch.setattr(products, "_mkl_likes_columns", lambda: True)
    looks = [isinstance(products.products(way, n, 1, e), products.Products) for e in (small, large) for n in (5, 100)]
    assert looks == [False, False, True, False]
