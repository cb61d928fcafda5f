"""Kernels for decoding steps: one token of each of several rows. The model itself is left as it is.

A step reads all weights and all keys for a handful of rows, and the libraries are at their worst there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_FEW = range(5, 33)  # rows of a matrix for which the transposed product is the faster one


class DecodingKernels(TorchFunctionMode):
    """Within it, what this thread's models compute goes through these kernels wherever they apply."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One call of a function of torch."""
        kwargs = kwargs or {}
        if func is functional.linear and _transposing_pays(*args[:2]):
            return _transposed_linear(*args, **kwargs)
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
