"""Kernels for decoding steps: one token of each of several rows. The model itself is left as it is.

A step reads all weights and all keys for a handful of rows, and the libraries are at their worst there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from robustrag_integrations.models.local.slab import Slab

_FEW = range(5, 33)  # rows of a matrix for which the transposed product is the faster one


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
            self._slab.check_shared_columns_were_read()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One call of a function of torch."""
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # whoever compiles a model chooses its kernels
            return func(*args, **kwargs)
        if func is functional.linear and _transposing_pays(*args[:2]):
            return _transposed_linear(*args, **kwargs)
        if func is functional.scaled_dot_product_attention and self._slab is not None:
            shared = self._slab.take_unread()
            if shared is not None:
                return _attend(shared, *args, **kwargs)
        return func(*args, **kwargs)


def _transposing_pays(inputs: Any, weight: Any = None) -> bool:
    """Whether this is a product in single precision, on a CPU, of as few rows as a decoding step has."""
    return (
        isinstance(weight, torch.Tensor)
        and weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and weight.dim() == 2
        and inputs.numel() // max(1, inputs.shape[-1]) in _FEW
        and torch.backends.mkl.is_available()
    )


def _transposed_linear(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear` as weight times columns: for so few rows the other order takes up to twice the time."""
    columns = inputs.reshape(-1, inputs.shape[-1]).t().contiguous()
    rows = torch.mm(weight, columns).t().contiguous().reshape(*inputs.shape[:-1], -1)
    return rows if bias is None else rows + bias


def _attend(
    shared: tuple[torch.Tensor, torch.Tensor],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Attention to columns that all rows share and to each row's own: the shared ones are read once for all rows.

    Args:
        shared: keys and values [1, G, P, width].
        query: [R, H, Q, width]; H * Q is a multiple of G.
        key, value: [R, H, C, width].
        attn_mask: [R, 1, Q, P + C], added to the scores.
        dropout_p, is_causal: not used; the mask says it all.
        scale: of the scores; 1 / sqrt(width) by default.

    Returns:
        [R, H, Q, width].
    """
    shared_keys, shared_values = (t[0] for t in shared)
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = torch.cat([_times(query, shared_keys.mT), query @ key.mT], dim=-1) + attn_mask
    before, own = scores.softmax(-1).split([shared_keys.shape[1], key.shape[2]], dim=-1)
    return _times(before, shared_values) + own @ value


def _times(rows: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """[R, H, Q, N] from [R, H, Q, K] and [G, K, N]: one product for each of G groups of heads, over all rows."""
    count, groups = len(rows), len(shared)
    folded = rows.reshape(count, groups, -1, rows.shape[-1]).transpose(0, 1)
    product = folded.reshape(groups, -1, rows.shape[-1]) @ shared
    return product.reshape(groups, count, -1, shared.shape[-1]).transpose(0, 1).reshape(*rows.shape[:-1], -1)
