"""Attention of decoding steps and token trees: to columns that rows share, and to each row's own.

Scores, weights and sums are in single precision at least, and rounded once at the end: half would round each score, and
its kernels are slow for one query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional

from robustrag_integrations.models.local.summation import cancelling, padded_counts

Attention = Callable[..., torch.Tensor]  # called as torch's `scaled_dot_product_attention`
Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values

_PATTERNS = 4  # test rows that show whether a product sums all rows in the same order


class AttendedKeys(torch.Tensor):  # type: ignore[misc]  # untyped library
    """Keys that carry their own attention function, as do tensors derived from them alone.

    Attributes:
        attention: takes the place of torch's `scaled_dot_product_attention`; called with plain tensors.
    """

    attention: Attention

    @classmethod
    def of(cls, keys: torch.Tensor, attention: Attention) -> torch.Tensor:
        """Attach an attention function to keys; return them as they are while a model is compiled, which ignores it."""
        if torch.compiler.is_compiling():
            return keys
        told: AttendedKeys = keys.as_subclass(cls)
        told.attention = attention
        return told

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a torch function on these keys."""
        given = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.Tensor)]
        keys = next((value for value in given if isinstance(value, cls)), None)
        if func is functional.scaled_dot_product_attention and keys is not None:
            args = [_plain(value) for value in args]
            return keys.attention(*args, **{name: _plain(value) for name, value in (kwargs or {}).items()})
        result = super().__torch_function__(func, types, args, kwargs or {})
        if keys is None or len(given) > 1:
            return _plain(result)
        if isinstance(result, cls):
            result.attention = keys.attention
        return result


def _plain(value: Any) -> Any:
    if not isinstance(value, AttendedKeys):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def attend_with_shared(
    shared: Pair,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    **settings: Any,
) -> torch.Tensor:
    """Compute attention to columns that all rows share, read once for all rows, and to each row's own.

    Args:
        shared: keys and values [1, G, P, width] that stand in front of those given.
        query: [R, H, Q, width]; H * Q is a multiple of G.
        key, value: [R, H, C, width].
        attn_mask: [R, 1, Q, P + C], added to the scores.
        scale: of the scores; 1 / sqrt(width) by default.
        settings: not used; the mask replaces them.

    Returns:
        [R, H, Q, width].
    """
    precise = at_least_single(query.dtype)
    shared_keys, shared_values = (t[0].to(precise) for t in shared)
    scaled = query.to(precise) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = torch.cat([_times(scaled, shared_keys.mT), scaled @ key.to(precise).mT], dim=-1)
    weights = (scores if attn_mask is None else scores + attn_mask).softmax(-1)
    before, own = weights.split([shared_keys.shape[1], key.shape[2]], dim=-1)
    return (_times(before, shared_values) + own @ value.to(precise)).to(query.dtype)


def attend_row_by_row(
    shared: Pair | None,
    rows: Sequence[Pair],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    **settings: Any,
) -> torch.Tensor:
    """Compute each row's attention over its own columns, whatever the other rows have.

    Args:
        shared: keys and values [1, G, P, width] of columns that all rows share.
        rows: per prompt, its own keys and values [1, G, columns, width]. Rows of padding come after them and get zeros.
        query: [R, H, Q, width].
        key, value: not used; `rows` has them.
        attn_mask: [R, 1, Q, P + columns], added to the scores; what a row does not have stands at the end.
        scale, settings: as above.

    Returns:
        [R, H, Q, width].
    """
    precise = at_least_single(query.dtype)
    folded = query.reshape(len(query), rows[0][0].shape[1], -1, query.shape[-1]).to(precise)
    mask = None if attn_mask is None else attn_mask.to(precise)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    result = torch.zeros_like(folded)
    if shared is None:
        for row, pair in enumerate(rows):
            keys, values = (t.to(precise) for t in pair)
            seen = None if mask is None else mask[row : row + 1, :, :, : keys.shape[2]]
            result[row] = functional.scaled_dot_product_attention(
                folded[row : row + 1], keys, values, attn_mask=seen, scale=scale
            )[0]
        return result.reshape(query.shape).to(query.dtype)
    shared_keys, shared_values = (t[0].to(precise) for t in shared)
    folded = folded * scale
    scores = _times(folded, shared_keys.mT)
    before = torch.zeros_like(scores)
    for row, pair in enumerate(rows):
        keys, values = (t[0].to(precise) for t in pair)
        own = torch.cat([scores[row], folded[row] @ keys.mT], dim=-1)
        weights = (own if mask is None else own + mask[row, :, :, : own.shape[-1]]).softmax(-1)
        before[row] = weights[..., : before.shape[-1]]
        result[row] = weights[..., before.shape[-1] :] @ values
    return (result + _times(before, shared_values)).reshape(query.shape).to(query.dtype)


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """Return the precision of scores and sums: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def _times(rows: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """Multiply [R, H, Q, K] by [G, K, N] into [R, H, Q, N]: one product per group of heads, over all rows."""
    count, groups = len(rows), len(shared)
    folded = rows.reshape(count, groups, -1, rows.shape[-1]).transpose(0, 1).reshape(groups, -1, rows.shape[-1])
    queries = folded.shape[1]
    shape = tuple(shared.shape), shared.stride(), shared.dtype, shared.device
    if (padded := _rows_alike(queries, *shape, torch.get_num_threads())) is None:
        product = torch.cat([own @ shared for own in folded.split(queries // count, dim=1)], dim=1)
    else:
        product = (functional.pad(folded, (0, 0, 0, padded - queries)) @ shared)[:, :queries]
    return product.reshape(groups, count, -1, shared.shape[-1]).transpose(0, 1).reshape(*rows.shape[:-1], -1)


@lru_cache(maxsize=1024)
def _rows_alike(
    rows: int, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: torch.device, threads: int
) -> int | None:
    """Return a number of rows, at least `rows`, at which a product sums all rows in the same order; None if none.

    Args:
        rows: the actual number of rows.
        shape, stride, dtype, device: of the other factor, [groups, summed, outputs].
        threads: the number of threads that compute it.
    """
    groups, summed, outputs = shape
    mine, weights = (t.to(device, dtype) for t in cancelling(_PATTERNS, summed, outputs))
    shared = torch.empty_strided(shape, stride, dtype=dtype, device=device).copy_(weights.T)
    for padded in padded_counts(rows):
        products = [row.expand(groups, padded, summed).contiguous() @ shared for row in mine]
        if all(torch.equal(product, product[:, :1].expand_as(product)) for product in products):
            return padded
    return None
