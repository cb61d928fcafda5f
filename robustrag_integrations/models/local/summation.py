"""In which order a model's products sum up, made visible.

Half precision rounds so much away that two orders mostly give the same bits, until one day they do not. So each product
with a weight is computed once more in the same shapes, of numbers whose sums all but cancel: nothing is left but
what rounding did on the way, and that is another number in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from robustrag_integrations.models.local.torch_calls import TorchCalls

_PLACES = {"linear": (0, 1, 1), "addmm": (1, 2, 0), "matmul": (0, 1, 0), "__matmul__": (0, 1, 0), "mm": (0, 1, 0)}
HALF = (torch.bfloat16, torch.float16)  # precisions whose bits say little of the order
_DIFFERENT = 509  # outputs of a trial's weight that are different
_UNKNOWN = frozenset({"baddbmm", "bilinear", "bmm", "conv1d", "conv2d", "einsum", "tensordot"})


class Summation(TorchCalls):
    """Within it, products of a pass are computed once more, of rows that are told apart by their kind.

    Args:
        kinds: of how many kinds rows are.
        strict: whether products of a kind that is not known here are an error, or left out.

    Attributes:
        found: per product of another shape, [rows, numbers] what rounding left.
    """

    def __init__(self, kinds: int, *, strict: bool = True) -> None:
        super().__init__()
        self._count, self._strict, self._of_rows = kinds, strict, list[int]()
        self._numbers: dict[object, tuple[torch.Tensor, torch.Tensor]] = {}
        self.found: dict[object, torch.Tensor] = {}

    def begin(self, kinds: Sequence[int]) -> None:
        """The rows of the next pass, by their kinds."""
        self._of_rows, self.found = list(kinds), {}

    def call(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """As torch has it, and a product once more.

        Raises:
            NotImplementedError: a product of a kind that is not known here.
        """
        name = getattr(func, "__name__", "")
        if name in _PLACES:
            self._sum(func, name, args, kwargs)
        elif name in _UNKNOWN and self._strict:
            raise NotImplementedError(f"its products by {name} are not tried")
        return func(*args, **kwargs)

    def _sum(self, func: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        left, right, summed = _PLACES[name]
        rows, weight = args[left], args[right]
        if rows.shape[-1] == 1:
            return  # a sum of one
        if weight.ndim != 2 or len(rows) != len(self._of_rows):
            if self._strict:
                raise NotImplementedError(f"its products by {name} of {tuple(rows.shape)} are not tried")
            return
        shape = (name, tuple(weight.shape), weight.stride(), tuple(rows.shape[1:]), len(args), *sorted(kwargs))
        if shape in self.found:
            return
        if shape not in self._numbers:
            self._numbers[shape] = self._cancelling(rows, weight, summed)
        mine, weights = self._numbers[shape]
        given = [torch.zeros_like(a) if isinstance(a, torch.Tensor) else a for a in args]
        given[left], given[right] = mine[self._of_rows].reshape(rows.shape), weights
        others = {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        self.found[shape] = func(*given, **others).reshape(len(rows), -1)

    def _cancelling(self, rows: torch.Tensor, weight: torch.Tensor, summed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows [kinds, K] and a weight laid out like this one, whose products sum to zero where nothing is rounded."""
        mine, weights = cancelling(self._count, rows.shape[-1], weight.shape[1 - summed])
        laid = torch.empty_strided(weight.shape, weight.stride(), dtype=weight.dtype, device=weight.device)
        laid.copy_(weights if summed == 1 else weights.T)
        return mine.to(rows.device, rows.dtype), laid


def cancelling(rows: int, summed: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [rows, summed] and weights [outputs, summed] whose products sum to zero where nothing is rounded."""
    chance = torch.Generator().manual_seed(0)
    half = summed // 2
    order = torch.randperm(half, generator=chance)
    mine, weights = torch.zeros(rows, summed), torch.zeros(min(outputs, _DIFFERENT), summed)
    mine[:, :half] = 64 * torch.randn(rows, half, generator=chance)
    weights[:, :half] = torch.randn(len(weights), half, generator=chance)
    mine[:, half : 2 * half] = mine[:, order]
    weights[:, half : 2 * half] = -weights[:, order]
    return mine, weights[torch.arange(outputs) % len(weights)]
