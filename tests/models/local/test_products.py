"""Products with weights: what torch's own give, by the kernel that is the fastest on a processor."""

from __future__ import annotations

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
    monkeypatch.setattr(products, "_OUT_OF_CACHE", 48 * 80)
    monkeypatch.setattr(products, "_WORK", 6 * 48 * 80)
    return str(request.param)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 11, 32, 33, 100])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_torch_whatever_their_shape(maker: str, rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(48, 80, bias=bias)
    inputs = torch.randn(rows, 1, 48)
    with torch.inference_mode():
        wanted = layer(inputs)
        with products.FastProducts():
            got = layer(inputs)
    assert got.shape == wanted.shape
    assert torch.allclose(got, wanted, atol=1e-5)
    assert got.is_contiguous()


def test_the_kernel_follows_from_processor_and_shape(maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    monkeypatch.setattr(products, "_has_onednn", lambda: True)
    monkeypatch.setattr(products, "by_onednn", lambda *args: used.append("onednn"))
    for rows in (1, 2, 5, 6, 100):
        products.linear(torch.randn(rows, 48), torch.randn(80, 48))
    assert len(used) == (2 if maker.startswith("amd") else 0)
    monkeypatch.setattr(products, "_LONE_ROWS", 1)
    products.linear(torch.randn(1, 48), torch.randn(80, 48))
    assert len(used) == {"amd": 3, "amd without AVX-512": 2}.get(maker, 0)
    with torch.backends.mkldnn.flags(enabled=False):
        products.linear(torch.randn(100, 48), torch.randn(80, 48))
    assert len(used) == {"amd": 3, "amd without AVX-512": 2}.get(maker, 0)


@pytest.mark.parametrize(
    "others",
    [
        lambda: (torch.zeros(8, 48, dtype=torch.bfloat16), torch.zeros(80, 48, dtype=torch.bfloat16)),
        lambda: (torch.zeros(8, 48, device="meta"), torch.zeros(80, 48, device="meta")),
    ],
    ids=["half precision", "another device"],
)
def test_other_products_stay_torchs_own(others: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "linear", None)
    inputs, weight = others()
    with products.FastProducts():
        assert functional.linear(inputs, weight).shape == (8, 80)


def test_mixed_precision_of_the_user_stays() -> None:
    with products.FastProducts(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.linear(torch.zeros(8, 48), torch.zeros(80, 48)).dtype == torch.bfloat16


def test_every_call_is_looked_at_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(tokens: int, width: int, dtype: Any = torch.float32) -> bool:
        network = torch.nn.Module()
        network.get_input_embeddings = lambda: torch.nn.Embedding(4, width, dtype=dtype)  # type: ignore[assignment]
        return isinstance(products.fast_products(tokens, network), products.FastProducts)

    monkeypatch.setattr(products, "onednn_pays", lambda: True)
    assert [looks(1, 1024), looks(1, 64), looks(1, 1024, torch.bfloat16)] == [True, False, False]
    monkeypatch.setattr(products, "onednn_pays", lambda: False)
    monkeypatch.setattr(products, "_mkl_likes_columns", lambda: True)
    assert [looks(5, 1024), looks(100, 1024)] == [True, False]
