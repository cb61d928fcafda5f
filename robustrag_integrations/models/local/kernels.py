"""Attention for reading and for decoding steps. The model itself is left as it is.

A step reads all keys for a handful of rows, and the libraries are at their worst there. So they are where a long prompt
behind columns that were read before needs an explicit mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from robustrag_integrations.models.local.summation import cancelling

if TYPE_CHECKING:
    from robustrag_integrations.models.local.key_values import Pair, Unread

Attention = Callable[..., torch.Tensor]  # called as torch's `scaled_dot_product_attention`

_BLOCK = 64  # tokens that attend together
_PATTERNS = 4  # rows with which it is tried whether a product sums up all rows in the same order
_IN_BLOCKS = 129  # tokens from which on blocks pay: one mask has so few of them hidden that two calls cost more
_FEWEST = 16  # tokens from which on a call of ours pays
_FEW_SCORES = 2**18  # that stay in the processor's cache from one product to the next


def for_heads(shared: torch.Tensor, each: int) -> torch.Tensor:
    """[rows, heads, columns, width]: keys or values that so many heads of a query share, for each of them."""
    return shared if each == 1 else shared[:, :, None].expand(-1, -1, each, -1, -1).flatten(1, 2)


def attention_of(keys: torch.Tensor, new: int) -> Attention:
    """What computes attention of the last `new` columns to keys [rows, heads, columns, width]: in blocks if faster."""
    least = _FEWEST if keys.dtype == torch.float32 else _IN_BLOCKS
    if new >= least and keys.device.type == "cpu":
        return attend_in_blocks
    attention: Attention = functional.scaled_dot_product_attention
    return attention


def attend_in_blocks(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, **settings: Any
) -> torch.Tensor:
    """Attention of tokens none of which sees a column behind its own: a block of them reads no column behind its last.

    A mask has the library's kernels compute all scores, the hidden half included.

    Args:
        query: [rows, heads, Q, width], of the last Q columns.
        key, value: [rows, heads, columns, width].
        attn_mask: [rows, 1, Q, columns], added to the scores; None has the library's own kernel do it all.
        settings: of `scaled_dot_product_attention`.
    """
    attention: Attention = functional.scaled_dot_product_attention
    count, columns = query.shape[2], key.shape[2]
    if attn_mask is None or attn_mask.shape[2:] != (count, columns):
        return attention(query, key, value, attn_mask=attn_mask, **settings)
    if count < _IN_BLOCKS:
        return _block(query, key, value, attn_mask, settings)
    found = torch.empty_like(query)
    for start in range(0, count, _BLOCK):
        end = min(start + _BLOCK, count)
        seen = columns - count + end
        parts = query[:, :, start:end], key[:, :, :seen], value[:, :, :seen], attn_mask[:, :, start:end, :seen]
        found[:, :, start:end] = _block(*parts, settings)
    return found


def _block(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, settings: Mapping[str, Any]
) -> torch.Tensor:
    """Attention of tokens to all columns that are given: product by product where scores are few and single."""
    rows, heads, count, width = query.shape
    plain = rows == 1 and heads == key.shape[1] and query.dtype == mask.dtype == torch.float32
    if not plain or settings.get("dropout_p") or heads * count * key.shape[2] > _FEW_SCORES:
        found: torch.Tensor = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, **settings)
        return found
    scale = settings.get("scale")
    scale = width**-0.5 if scale is None else scale
    scores = torch.baddbmm(mask[0].expand(heads, -1, -1), query[0], key[0].mT, alpha=scale)
    return (scores.softmax(-1) @ value[0])[None]


def attend(
    unread: Unread,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attention to columns that all rows share, read once for all rows, and to each row's own.

    Scores, weights and sums are in single precision at least, and rounded once at the end.

    Args:
        unread: keys and values that are not among those given, of G heads.
        query: [R, H, Q, width]; H * Q is a multiple of G.
        key, value: [R, H, C, width].
        attn_mask: [R, 1, Q, P + C], added to the scores; None where a row sees all that it has.
        dropout_p, is_causal: not used; the mask says it all.
        scale: of the scores; 1 / sqrt(width) by default.
        enable_gqa: not used; heads are grouped by their number.

    Returns:
        [R, H, Q, width].
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if unread.rows is not None:
        return _row_by_row(unread.shared, unread.rows, query, attn_mask, scale)
    assert unread.shared is not None  # noqa: S101 - there is nothing else to read
    precise = at_least_single(query.dtype)
    shared_keys, shared_values = (t[0].to(precise) for t in unread.shared)
    scaled = query.to(precise) * scale
    scores = torch.cat([_times(scaled, shared_keys.mT), scaled @ key.to(precise).mT], dim=-1)
    weights = (scores if attn_mask is None else scores + attn_mask).softmax(-1)
    before, own = weights.split([shared_keys.shape[1], key.shape[2]], dim=-1)
    return (_times(before, shared_values) + own @ value.to(precise)).to(query.dtype)


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """The precision of scores and sums: half would round each score, and its kernels are slow for one query."""
    return torch.promote_types(dtype, torch.float32)


def _row_by_row(
    shared: Pair | None, rows: Sequence[Pair], query: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> torch.Tensor:
    """Each row's attention over the columns that it has, whatever the other rows have.

    Args:
        shared: keys and values [1, G, P, width] of columns that all rows share.
        rows: per prompt its own keys and values [1, G, columns, width]. Rows of padding come after them and get zeros.
        query: [R, H, Q, width].
        mask: [R, 1, Q, columns], added to the scores; what a row does not have stands at the end.
        scale: of the scores.
    """
    precise = at_least_single(query.dtype)
    folded = query.reshape(len(query), rows[0][0].shape[1], -1, query.shape[-1]).to(precise)
    wanted = None if mask is None else mask.to(precise)
    if rows[0][0].dtype != precise:
        rows = [(keys.to(precise), values.to(precise)) for keys, values in rows]
    if shared is not None:
        found = _beside_shared(shared, rows, folded * scale, wanted)
    else:
        parts = []
        for row, (queries, (keys, values)) in enumerate(zip(folded.split(1), rows, strict=False)):
            seen = None if wanted is None else wanted[row : row + 1, :, :, : keys.shape[2]]
            parts.append(functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen, scale=scale))
        found = torch.cat([*parts, torch.zeros_like(folded[len(rows) :])])
    return found.reshape(query.shape).to(query.dtype)


def _beside_shared(shared: Pair, rows: Sequence[Pair], folded: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """`_row_by_row` where rows share columns; `folded` has the queries [R, G, H * Q / G, width], scaled."""
    shared_keys, shared_values = (t[0].to(folded.dtype) for t in shared)
    mine, scores = torch.zeros_like(folded), _times(folded, shared_keys.mT)
    common = torch.zeros_like(scores)
    for row, pair in enumerate(rows):
        keys, values = (t[0] for t in pair)
        own = torch.cat([scores[row], folded[row] @ keys.mT], dim=-1)
        weights = (own if mask is None else own + mask[row, :, :, : own.shape[-1]]).softmax(-1)
        common[row] = weights[..., : common.shape[-1]]
        mine[row] = weights[..., common.shape[-1] :] @ values
    return mine + _times(common, shared_values)


def _times(rows: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """[R, H, Q, N] from [R, H, Q, K] and [G, K, N]: one product for each of G groups of heads, over all rows."""
    count, groups = len(rows), len(shared)
    folded = rows.reshape(count, groups, -1, rows.shape[-1]).transpose(0, 1).reshape(groups, -1, rows.shape[-1])
    asked = folded.shape[1]
    shape = tuple(shared.shape), shared.stride(), shared.dtype, shared.device
    if (tried := _rows_alike(asked, *shape, torch.get_num_threads())) is None:
        product = torch.cat([own @ shared for own in folded.split(asked // count, dim=1)], dim=1)
    else:
        product = (functional.pad(folded, (0, 0, 0, tried - asked)) @ shared)[:, :asked]
    return product.reshape(groups, count, -1, shared.shape[-1]).transpose(0, 1).reshape(*rows.shape[:-1], -1)


@lru_cache(maxsize=1024)
def _rows_alike(
    rows: int, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: torch.device, threads: int
) -> int | None:
    """The number of rows, at least so many, of which a product sums up all in the same order; None if there is none.

    Args:
        rows: that there are.
        shape, stride, dtype, device: of what they are multiplied with, [groups, summed, outputs].
        threads: that compute it.
    """
    groups, summed, outputs = shape
    mine, weights = (t.to(device, dtype) for t in cancelling(_PATTERNS, summed, outputs))
    shared = torch.empty_strided(shape, stride, dtype=dtype, device=device).copy_(weights.T)
    for padded in sorted({-(-rows // multiple) * multiple for multiple in (1, 4, 8, 16, 32)}):
        products = [row.expand(groups, padded, summed).contiguous() @ shared for row in mine]
        if all(torch.equal(product, product[:, :1].expand_as(product)) for product in products):
            return padded
    return None
