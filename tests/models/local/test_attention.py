"""Kernels of decoding steps: what torch's own give, for fewer bytes read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.nn import functional  # noqa: E402

from robustrag_integrations import DecodingAggregation, LocalModel  # noqa: E402
from robustrag_integrations.models.local.cache import AttendedKeys, BatchKVCache  # noqa: E402
from robustrag_integrations.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402

QUERY = "Who built the Halden Light?"
PASSAGES = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra."]
PROMPTS = prompts_for("short_answer")
TOKENIZER = tiny_tokenizer()
TOLD = {"llama", "mistral", "qwen3", "gemma3", "phi3", "gpt2", "neox"}  # Gemma 2 caps its scores


def local(network: Any, **changes: Any) -> LocalModel:
    return LocalModel(network, TOKENIZER, max_context_tokens=96, max_new_tokens=6, stop=(), **changes)


def session(model: LocalModel) -> Any:
    isolated = [PROMPTS.isolated.render(context=text, query=QUERY) for text in PASSAGES]
    return model.open_session(isolated, PROMPTS.no_retrieval.render(query=QUERY), 6)


def steps(model: LocalModel) -> list[np.ndarray]:
    opened = session(model)
    told = [opened.opening.distributions, opened.append(40), opened.append(41)]
    return [np.vstack([t.groups, t.no_retrieval]) for t in told]


@pytest.mark.parametrize("architecture", [*sorted(TOLD), "gemma2"])
def test_each_row_attends_by_itself_where_attention_can_be_told(architecture: str) -> None:
    network = tiny_model(architecture)
    model = local(network)
    assert session(model)._batch.cache.row_by_row == (architecture in TOLD)
    for ours, plain in zip(steps(model), steps(local(network, share_prefixes=False)), strict=True):
        assert np.abs(ours - plain).max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fixed_shapes", [False, True])
def test_half_precision_is_no_less_accurate_than_plain_reading(dtype: Any, fixed_shapes: bool) -> None:
    network = tiny_model("llama", dtype=dtype)
    model = local(network, fixed_shapes=fixed_shapes)
    assert session(model)._batch.cache.row_by_row == (not fixed_shapes)
    precise = steps(local(tiny_model("llama").to(torch.float64)))
    rounded = steps(local(network, share_prefixes=False))
    for ours, plain, wanted in zip(steps(model), rounded, precise, strict=True):
        assert np.abs(ours - wanted).max() <= 2 * np.abs(plain - wanted).max()


def test_an_attention_that_cannot_be_told_reads_all_rows_in_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AttentionInterface

    def own_attention(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float, **rest: Any
    ) -> tuple[Any, None]:
        groups = query.shape[1] // key.shape[1]
        keys, values = (t.repeat_interleave(groups, dim=1) for t in (key, value))
        scores = query @ keys.mT * scaling
        if attention_mask is None:
            attention_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(keys.shape[2] - query.shape[2])
        if attention_mask.dtype == torch.bool:
            attention_mask = torch.zeros_like(scores).masked_fill(~attention_mask, -1e9)
        scores = scores + attention_mask
        return (scores.softmax(-1) @ values).transpose(1, 2).contiguous(), None

    monkeypatch.setitem(AttentionInterface._global_mapping, "sdpa", own_attention)
    model = local(tiny_model("llama"))
    assert model.why_not_shared is None
    assert not session(model)._batch.cache.row_by_row
    assert DecodingAggregation(model, max_new_tokens=3).answer(QUERY, PASSAGES).text


def _cache(lengths: list[int], dtype: Any = torch.float32) -> BatchKVCache:
    """Rows of these lengths, of one layer with two heads of width 8, filled at random; a row of padding behind them."""
    cache = BatchKVCache(len(lengths) + 1, max(lengths) + 2, prompts=len(lengths), row_by_row=True)
    for row, length in enumerate(lengths):
        keys, values = (torch.randn(1, 2, length, 8).to(dtype) for _ in range(2))
        cache.put(row, [(keys, values)])
    return cache


def _wanted(cache: BatchKVCache, query: Any, dtype: Any = torch.float32) -> Any:
    """The attention of each row by itself, over its own columns."""
    found = []
    for row in range(cache.prompts):
        pair = [kept[row : row + 1, :, : cache.lengths[row] + 1] for kept in cache._kept[0]]
        keys, values = (t.to(dtype).repeat_interleave(query.shape[1] // 2, dim=1) for t in pair)
        found.append(functional.scaled_dot_product_attention(query[row : row + 1], keys, values))
    return torch.cat(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_attention_of_rows_of_several_lengths_is_that_of_each_by_itself(dtype: Any) -> None:
    """In half precision no less accurate than torch's own; the reference has twice as many digits as single."""
    torch.manual_seed(0)
    lengths = [40, 90, 3, 61]
    cache = _cache(lengths, dtype)
    query = (3 * torch.randn(5, 2, 1, 8)).to(dtype)
    keys, values = cache.update(*(torch.randn(5, 2, 1, 8).to(dtype) for _ in range(2)), 0)
    columns = torch.arange(cache.width)
    hidden = torch.where(columns <= torch.tensor([*lengths, 0])[:, None], 0.0, torch.finfo(dtype).min)
    mask = hidden[:, None, None].to(dtype)
    got = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
    assert type(got) is torch.Tensor
    assert (got.dtype, got.shape) == (dtype, query.shape)
    exact, usual = _wanted(cache, query.double(), torch.float64), _wanted(cache, query, dtype)
    if dtype == torch.float32:
        assert torch.allclose(got[:4], usual, atol=1e-5)
    else:
        assert (got[:4] - exact).abs().mean() <= (usual - exact).abs().mean()


def test_row_by_row_no_other_row_has_a_say_in_the_bits_of_an_attention() -> None:
    """Nor in what memory it reads: what a row has not written may hold anything."""

    def attended(lengths: list[int]) -> Any:
        torch.manual_seed(len(lengths))
        cache = _cache([5, *lengths])
        torch.manual_seed(1)
        kept_keys, kept_values = cache._kept[0]
        kept_keys[0, :, :5], kept_values[0, :, :5] = torch.randn(2, 2, 5, 8)
        kept_keys[0, :, 5:] = kept_values[0, :, 5:] = float("nan")
        query = torch.randn(1, 2, 1, 8).repeat(len(lengths) + 2, 1, 1, 1)
        keys, values = cache.update(query, query, 0)
        mask = torch.zeros(len(query), 1, 1, cache.width)
        got = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return got[0]

    assert torch.equal(attended([3]), attended([200, 1, 7, 64]))


def test_columns_that_nobody_reads_are_an_error() -> None:
    new, cache = torch.zeros(2, 2, 1, 8), _cache([3])
    cache.update(new, new, 0)
    with pytest.raises(RuntimeError, match="does not read each row"):
        cache.update(new, new, 0)
    cache.update(new, new, 0)
    with pytest.raises(RuntimeError, match="does not read each row"):
        cache.check_attended()


def test_attention_to_other_keys_is_torchs_own() -> None:
    """The model is the user's: whoever else calls it at the same time gets torch's own kernels."""
    cache = _cache([3])
    query, key = torch.randn(2, 2, 1, 8), torch.randn(2, 2, 2, 8)
    wanted = functional.scaled_dot_product_attention(query, key, key)
    cache.update(query, query, 0)
    assert torch.equal(functional.scaled_dot_product_attention(query, key, key), wanted)
    with pytest.raises(RuntimeError, match="does not read each row"):
        cache.check_attended()


def test_what_a_model_makes_of_its_keys_is_attended_to_as_they_are() -> None:
    cache = _cache([3, 5])
    new, query = torch.randn(3, 2, 1, 8), torch.randn(3, 4, 1, 8)
    keys, values = cache.update(new, new, 0)
    keys = keys[:, :, None].expand(3, 2, 2, 1, 8).reshape(3, 4, 1, 8).contiguous()
    got = functional.scaled_dot_product_attention(query, key=keys, value=values)
    assert torch.allclose(got[:2], _wanted(cache, query), atol=1e-5)


def test_a_compiled_model_is_probed_and_answers_as_before() -> None:
    network, compiled = tiny_model("llama"), tiny_model("llama")
    compiled.compile(backend="eager", dynamic=True)
    models = [local(n) for n in (network, compiled)]
    ours, theirs = (DecodingAggregation(m, max_new_tokens=2).answer(QUERY, PASSAGES) for m in models)
    assert all(m.numerics["isolation"].startswith("probed") for m in models)
    assert (ours.text, ours.radius) == (theirs.text, theirs.radius)


def test_what_models_make_of_their_keys_and_other_tensors_is_plain() -> None:
    """An attention of the model's own, as with capped scores, goes on with torch's tensors."""
    cache, new = _cache([3, 4]), torch.randn(3, 2, 1, 8)
    keys, values = cache.update(new, new, 0)
    assert type(keys) is AttendedKeys
    scores = new @ keys.transpose(2, 3)
    assert type(scores) is torch.Tensor
    assert type(torch.cat([keys, new])) is torch.Tensor
    assert torch.equal(scores.softmax(-1) @ values, (new @ new.mT).softmax(-1) @ new)


def test_a_cache_grows_where_more_is_written_and_forgets_its_last_columns() -> None:
    torch.manual_seed(0)
    cache, new = BatchKVCache(2, 3), torch.randn(2, 2, 400, 8)
    for start in range(0, 400, 100):
        for layer in (0, 1):
            keys, values = cache.update(*[new[:, :, start : start + 100]] * 2, layer)
            assert torch.equal(keys, new[:, :, : start + 100])
            assert torch.equal(values, keys)
        cache.advance(100)
    cache.crop(250)
    assert cache.lengths == [150, 150]
    assert torch.equal(cache.pairs()[1][0], new[:, :, :150])


def test_rows_that_are_filled_up_hold_zeros_where_they_have_nothing() -> None:
    cache = _cache([3, 5])
    cache._kept[0][0][0, :, 3:] = float("nan")
    twin = cache.filled_up()
    [(keys, _)] = twin.pairs()
    assert (twin.rows, twin.lengths) == (2, [5, 5])
    assert torch.equal(keys[0, :, :3], cache._kept[0][0][0, :, :3])
    assert not keys[0, :, 3:].any()
