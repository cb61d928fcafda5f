"""A test that shows the order in which a model's products are summed.

Half precision rounds so much away that two orders mostly give the same bits, but not always. So each product with a
weight is computed once more in the same shapes, over numbers whose sums all but cancel: only the rounding errors of
the way are left, and another order leaves others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_PLACES = {"linear": (0, 1, 1), "addmm": (1, 2, 0), "matmul": (0, 1, 0), "__matmul__": (0, 1, 0), "mm": (0, 1, 0)}
HALF = (torch.bfloat16, torch.float16)  # precisions whose bits show little of the order
_DIFFERENT = 509  # different outputs of a trial's weight


class Summation(TorchFunctionMode):  # type: ignore[misc]  # untyped library
    """Within it, products with weights are computed once more, with rows that are all the same.

    Args:
        rows: the number of rows of the pass; products of other numbers are left alone.

    Attributes:
        left: per shape of a product, the [rows, numbers] rounding errors.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows
        self.left: dict[object, torch.Tensor] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one torch call, and a product once more."""
        if (name := getattr(func, "__name__", "")) in _PLACES:
            self._sum(func, name, args, kwargs or {})
        return func(*args, **kwargs or {})

    def _sum(self, func: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        left, right, summed = _PLACES[name]
        rows, weight = args[left], args[right]
        shape = (name, tuple(weight.shape), weight.stride(), tuple(rows.shape[1:]), len(args), *sorted(kwargs))
        if rows.shape[-1] == 1 or weight.ndim != 2 or len(rows) != self._rows or shape in self.left:
            return
        mine, weights = cancelling(1, rows.shape[-1], weight.shape[1 - summed])
        laid = torch.empty_strided(weight.shape, weight.stride(), dtype=weight.dtype, device=weight.device)
        laid.copy_(weights if summed == 1 else weights.T)
        given = [torch.zeros_like(a) if isinstance(a, torch.Tensor) else a for a in args]
        given[left], given[right] = mine.to(rows.device, rows.dtype).expand_as(rows).contiguous(), laid
        others = {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        self.left[shape] = func(*given, **others).reshape(len(rows), -1)


def padded_counts(rows: int) -> list[int]:
    """Return the numbers of rows to try: as given, and padded to the sizes of blocks in which kernels work."""
    return sorted({-(-rows // multiple) * multiple for multiple in (1, 4, 8, 16, 32)})


def cancelling(rows: int, summed: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows [rows, summed] and weights [outputs, summed] whose products sum to zero without rounding."""
    chance = torch.Generator().manual_seed(0)
    half = summed // 2
    order = torch.randperm(half, generator=chance)
    mine, weights = torch.zeros(rows, summed), torch.zeros(min(outputs, _DIFFERENT), summed)
    mine[:, :half] = 64 * torch.randn(rows, half, generator=chance)
    weights[:, :half] = torch.randn(len(weights), half, generator=chance)
    mine[:, half : 2 * half] = mine[:, order]
    weights[:, half : 2 * half] = -weights[:, order]
    return mine, weights[torch.arange(outputs) % len(weights)]
