"""Kernels for decoding steps: one token of each of several rows. The model itself is left as it is.

A step reads all weights and all keys for a handful of rows, and the libraries are at their worst there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from robustrag_integrations.models.local.slab import Pair, Slab, Unread

_FEW = range(5, 33)  # rows of a matrix for which the transposed product is the faster one
_LARGE = 2**19  # numbers of a weight from which on it is; smaller ones stay in the processor's cache
_OURS = (functional.linear, functional.scaled_dot_product_attention)


def is_large(weight: torch.Tensor) -> bool:
    """Whether a weight is so large that its products with few rows are worth a kernel of their own."""
    return bool(weight.numel() >= _LARGE)


def decoding_kernels(
    slab: Slab | None, tokens: int, keep: int | torch.Tensor, large: bool
) -> AbstractContextManager[object]:
    """The kernels for a forward pass, where they have anything to do in it.

    Args:
        slab: its cache, if it is a step of several rows.
        tokens: how many it reads.
        keep: of how many of them logits are wanted, or which.
        large: whether the model's weights are.
    """
    few = tokens in _FEW or (keep if isinstance(keep, int) else len(keep)) in _FEW
    return DecodingKernels(slab) if slab is not None or (few and large) else nullcontext()


class DecodingKernels(TorchFunctionMode):  # type: ignore[misc]  # untyped library
    """Within it, what this thread's models compute goes through these kernels wherever they apply.

    Args:
        slab: the cache of the forward pass, if it is one whose rows may share columns.
    """

    def __init__(self, slab: Slab | None) -> None:
        super().__init__()
        self._slab = slab

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if self._slab is not None and error is None:
            self._slab.check_all_was_read()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One call of a function of torch."""
        kwargs = kwargs or {}
        if func not in _OURS or torch.compiler.is_compiling():  # whoever compiles a model chooses its kernels
            return func(*args, **kwargs)
        if func is functional.linear and _transposing_pays(*args[:2]):
            return _transposed_linear(*args, **kwargs)
        if func is functional.scaled_dot_product_attention and self._slab is not None:
            unread = self._slab.take_unread()
            if unread is not None:
                return attend(unread, *args, **kwargs)
        return func(*args, **kwargs)


def _transposing_pays(inputs: Any, weight: Any = None) -> bool:
    """Whether this is a product in single precision, on a CPU, of as few rows as a decoding step has."""
    return (
        isinstance(weight, torch.Tensor)
        and weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and weight.dim() == 2
        and is_large(weight)
        and inputs.numel() // max(1, inputs.shape[-1]) in _FEW
        and torch.backends.mkl.is_available()
    )


def _transposed_linear(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear` as weight times columns: for so few rows the other order takes up to twice the time."""
    columns = inputs.reshape(-1, inputs.shape[-1]).t().contiguous()
    rows = torch.mm(weight, columns).t().contiguous().reshape(*inputs.shape[:-1], -1)
    return rows if bias is None else rows + bias


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
    shared_keys, shared_values = (t[0] for t in unread.shared)
    query = query * scale
    scores = torch.cat([_times(query, shared_keys.mT), query @ key.mT], dim=-1)
    weights = (scores if attn_mask is None else scores + attn_mask).softmax(-1)
    before, own = weights.split([shared_keys.shape[1], key.shape[2]], dim=-1)
    return _times(before, shared_values) + own @ value


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
    folded = query.reshape(len(query), rows[0][0].shape[1], -1, query.shape[-1])
    if shared is not None:
        found = _beside_shared(shared, rows, folded * scale, mask)
    else:
        found = torch.zeros_like(folded)
        for row, (keys, values) in enumerate(rows):
            seen = None if mask is None else mask[row : row + 1, :, :, : keys.shape[2]]
            found[row] = functional.scaled_dot_product_attention(
                folded[row : row + 1], keys, values, attn_mask=seen, scale=scale
            )[0]
    return found.reshape(query.shape)


def _beside_shared(shared: Pair, rows: Sequence[Pair], folded: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """`_row_by_row` where rows share columns; `folded` has the queries [R, G, H * Q / G, width], scaled."""
    mine, scores = torch.zeros_like(folded), _times(folded, shared[0][0].mT)
    common = torch.zeros_like(scores)
    for row, (keys, values) in enumerate(rows):
        own = torch.cat([scores[row], folded[row] @ keys[0].mT], dim=-1)
        weights = (own if mask is None else own + mask[row, :, :, : own.shape[-1]]).softmax(-1)
        common[row] = weights[..., : common.shape[-1]]
        mine[row] = weights[..., common.shape[-1] :] @ values[0]
    return mine + _times(common, shared[1][0])


def _times(rows: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """[R, H, Q, N] from [R, H, Q, K] and [G, K, N]: one product for each of G groups of heads, over all rows."""
    count, groups = len(rows), len(shared)
    folded = rows.reshape(count, groups, -1, rows.shape[-1]).transpose(0, 1)
    product = folded.reshape(groups, -1, rows.shape[-1]) @ shared
    return product.reshape(groups, count, -1, shared.shape[-1]).transpose(0, 1).reshape(*rows.shape[:-1], -1)
