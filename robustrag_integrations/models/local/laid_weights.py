"""Weights of a small model as the kernels of products like them best: in another layout, and side by side.

Products with a few dozen tokens take up to a tenth less then, and three of them become one. They are copies, so only
models of which a copy takes little memory get them, and every question looks first whether they still hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Protocol

import torch
from torch.nn import functional

from robustrag_integrations.models.local.products import by_onednn, fewest_rows, mkl_likes_laid_weights, takes_onednn

_MOST_BYTES = 2**26  # of weights that are copied
_TOKENS = 128  # of a product that the layout is best for
_WORK = 2**19  # multiplications of a product from which on it pays; it takes a few microseconds to be called


class Norm(Protocol):
    """Scales numbers before a product."""

    @property
    def least(self) -> float:
        """What decides how, besides the model's weights."""

    def scaled(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., I] of the same."""


Layers = Mapping[Any, Sequence[Any]]
"""Linear layers that are given the same numbers, by the module that asks for them; all have a bias, or none has."""


class LaidWeights:
    """The weights of a model, laid side by side; none where that does not pay, or copies take too much memory.

    Args:
        model: whose weights they are, in single precision on a CPU.
        layers: of the model.
        weights: what tells whether somebody has changed the model's weights.
    """

    @torch.inference_mode()
    def __init__(self, model: Any, layers: Layers, weights: object) -> None:
        found = {asking: _kind(several) for asking, several in layers.items()} if _is_small(model) else {}
        kinds = {asking: kind for asking, kind in found.items() if kind is not None}
        self._layers = layers if kinds else {}
        self._weights = weights
        self._looked_at = [_some(weight) for weight in model.parameters()] if kinds else []
        self._seen = self._look()  # before they are copied: a change meanwhile is seen by the next question
        self._laid = {asking: kind.of(layers[asking]) for asking, kind in kinds.items()}
        self._room = _MOST_BYTES - sum(weight.nbytes for weight in model.parameters())
        self._of_tokens: tuple[Any, torch.Tensor] | None = None

    @torch.inference_mode()
    def hold(self, layers: Layers, weights: object) -> bool:
        """Whether these are the layers that were laid, and no weight of the model has changed.

        `weights` says nothing of what was written by way of a parameter's `data`. That is seen if it has reached any of
        a vector, or all of a row or of a column of a matrix.
        """
        if not self._layers:
            return True
        return self._layers == layers and self._weights == weights and torch.equal(self._seen, self._look())

    def product(self, asking: Any, inputs: torch.Tensor, as_for: int | None) -> torch.Tensor | None:
        """The outputs [..., sum of O] of a module's layers; None if they were not laid, or their own are faster.

        Args:
            asking: the module.
            inputs: [..., I].
            as_for: as `linear` has it.
        """
        found = self._laid.get(asking)
        if found is None or not found.pays(as_for or inputs.numel() // inputs.shape[-1]):
            return None
        return found.product(inputs)

    @torch.inference_mode()
    def of_tokens(self, asking: Any, embeddings: torch.Tensor, norm: Norm) -> torch.Tensor | None:
        """[V, sum of O]: what a module's layers make of each token by itself; None if they were not laid.

        Also where that takes too much memory. All tokens are computed in the same parts, whoever asks.

        Args:
            asking: the module, always the same.
            embeddings: [V, I] of the tokens.
            norm: what the layers are given of an embedding.
        """
        found = self._laid.get(asking)
        if found is None or len(embeddings) * found.outputs * embeddings.itemsize > self._room:
            return None
        known = self._of_tokens
        if known is None or known[0] != norm.least:
            parts = (found.product(norm.scaled(part)) for part in embeddings.split(_TOKENS))
            self._of_tokens = known = norm.least, torch.cat(list(parts))
        return known[1]

    def _look(self) -> torch.Tensor:
        """The bits of the numbers, as what is not a number does not equal itself."""
        return (torch.cat(self._looked_at) if self._looked_at else torch.empty(0)).view(torch.int32)


@dataclass(frozen=True)
class _LaidWeight:
    """The weights of linear layers, as one.

    Attributes:
        weight: [sum of O, I]; where it is oneDNN's, torch cannot look into it.
        bias: [sum of O], or None.
        outputs: the sum of O.
        fewest: rows of the inputs for which the layers' own weights are no faster.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None
    outputs: int
    fewest: int

    @classmethod
    def of(cls, layers: Sequence[Any]) -> _LaidWeight:
        weights = torch.cat([layer.weight for layer in layers])
        biases = [layer.bias for layer in layers if layer.bias is not None]
        bias = torch.cat(biases) if biases else None
        return cls(cls.laid(weights), bias, len(weights), cls.fewest_rows(weights.numel()))

    @staticmethod
    def laid(weights: torch.Tensor) -> torch.Tensor:
        """For MKL column by column."""
        return weights.t().contiguous().t()

    @staticmethod
    def fewest_rows(numbers: int) -> int:
        """From which on it pays, of a weight of so many numbers."""
        return 1

    def pays(self, rows: int) -> bool:
        """Whether the layers' own weights are no faster for so many rows."""
        return rows >= self.fewest

    def product(self, inputs: torch.Tensor) -> torch.Tensor:
        """[..., sum of O] of [..., I]."""
        return functional.linear(inputs, self.weight, self.bias)


@dataclass(frozen=True)
class _OneDnnWeight(_LaidWeight):
    """The same for oneDNN."""

    @staticmethod
    def laid(weights: torch.Tensor) -> torch.Tensor:
        """In blocks that it knows the order of."""
        found: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weights, _TOKENS)
        return found

    @staticmethod
    def fewest_rows(numbers: int) -> int:
        """Its calls cost more than small products take."""
        return fewest_rows(numbers, _WORK)

    def pays(self, rows: int) -> bool:
        """Also whether it is still switched on."""
        return rows >= self.fewest and torch.backends.mkldnn.enabled

    def product(self, inputs: torch.Tensor) -> torch.Tensor:
        """By its kernel."""
        return by_onednn(inputs, self.weight, self.bias)


def _is_small(model: Any) -> bool:
    """Whether a copy takes little memory, and can be watched: torch counts no changes of inference tensors."""
    weights = list(model.parameters())
    return sum(weight.nbytes for weight in weights) <= _MOST_BYTES and not any(w.is_inference() for w in weights)


def _kind(layers: Sequence[Any]) -> type[_LaidWeight] | None:
    """How the weights of layers are laid; None if that does not pay."""
    numbers = sum(layer.weight.numel() for layer in layers)
    if takes_onednn(_TOKENS, numbers, _WORK) and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return _OneDnnWeight
    return _LaidWeight if mkl_likes_laid_weights() else None


def _some(weight: torch.Tensor) -> torch.Tensor:
    """Numbers from each row and each column of a matrix, or all of a vector; in its own memory."""
    columns, most = weight.shape[-1], min(weight.shape)
    apart = next(step for step in range(most, 0, -1) if gcd(step, columns) == 1) if weight.dim() > 1 else 1
    return weight.detach().flatten()[::apart]
