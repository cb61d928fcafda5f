"""Muon for matrices (orthogonalised momentum), AdamW for the rest."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from training.reader.model import Reader

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_MOMENTUM, _DECAY, _SCALE = 0.95, 0.02, 0.2


class ReaderOptimiser:
    """Updates a reader; its whole state can be saved and restored."""

    def __init__(self, model: Reader) -> None:
        named = dict(model.named_parameters())
        self._matrices = [p for name, p in named.items() if p.ndim == 2 and name != "embedding"]
        self._rest = [p for name, p in named.items() if p.ndim != 2 or name == "embedding"]
        self._momenta = [torch.zeros_like(p) for p in self._matrices]
        self._adam = torch.optim.AdamW(self._rest, betas=(0.9, 0.98), weight_decay=0.0)

    def state(self) -> dict[str, Any]:
        """For `restore`."""
        return {"adam": self._adam.state_dict(), "momenta": self._momenta}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken."""
        self._adam.load_state_dict(state["adam"])
        for mine, saved in zip(self._momenta, state["momenta"], strict=True):
            mine.copy_(saved)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Apply and clear the gradients with this learning rate."""
        torch.nn.utils.clip_grad_norm_(self._rest, 1.0)
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
        for matrix, momentum in zip(self._matrices, self._momenta, strict=True):
            assert matrix.grad is not None
            momentum.mul_(_MOMENTUM).add_(matrix.grad)
            update = matrix.grad + _MOMENTUM * momentum
            for part, change in zip(_separate(matrix.data), _separate(update), strict=True):
                by_shape.setdefault(tuple(part.shape), []).append((part, change))
        for shape, pairs in by_shape.items():
            directions = _orthogonalised(torch.stack([change for _, change in pairs]))
            for (part, _), direction in zip(pairs, directions, strict=True):
                part.mul_(1 - rate * _DECAY).add_(direction, alpha=-rate * _SCALE * math.sqrt(max(shape)))
        for parameter in (*self._matrices, *self._rest):
            parameter.grad = None


def _separate(matrix: Tensor) -> tuple[Tensor, ...]:
    """Query, key and value (or gate and up) share a matrix for speed, and are orthogonalised apart."""
    rows, columns = matrix.shape
    if rows == 3 * columns:
        return matrix.chunk(3)
    return matrix.chunk(2) if rows > columns else (matrix,)


def _orthogonalised(gradients: Tensor, rounds: int = 5) -> Tensor:
    """[n, a, b] to the nearest semi-orthogonal matrices, roughly, by Newton-Schulz iteration."""
    a, b, c = _NEWTON_SCHULZ
    x = gradients / (gradients.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(rounds):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x.mT if tall else x
    return result
