"""Rotations by which a model's heads are told where a token stands.

A model works them out anew in every pass. But a place has one rotation, whatever else is read: a table serves all
prompts and steps of a question.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

WITHOUT_SWITCH = ("default", "linear", "yarn", "llama3", "proportional")
"""Kinds of position encodings whose frequencies do not follow from how long the longest row is."""
Turn = tuple[torch.Tensor, torch.Tensor]
"""[R, 1, T, width] factors for the numbers of a head, and for those of its other half."""

_BLOCK = 256  # places that are worked out together, whoever asks: a place has the same bits however many are known


class Turns:
    """The rotations of places.

    Args:
        module: gives cosines and sines [R, T, width] of numbers like those that it is given, at places [R, T].
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._lasting = getattr(module, "rope_type", None) in WITHOUT_SWITCH
        self._table: torch.Tensor | None = None

    def of(self, hidden: torch.Tensor, places: torch.Tensor) -> Turn:
        """For numbers [R, T, ...] at places [R, T]."""
        if not self._lasting:
            return _parted(self._worked_out(hidden, places))
        table, least = self._table, int(places.max()) + 1
        if table is None or len(table) < least:
            starts = range(0, least, _BLOCK)
            blocks = [torch.arange(start, start + _BLOCK, device=places.device)[None] for start in starts]
            self._table = table = torch.cat([self._worked_out(hidden, block)[0] for block in blocks])
        return _parted(functional.embedding(places, table))

    def _worked_out(self, hidden: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """[R, T, twice the width] factors, those of a head's other half last."""
        cos, sin = self._module(hidden, places)
        low, high = sin.chunk(2, dim=-1)
        return torch.cat([cos, -low, high], dim=-1)


def turned(numbers: torch.Tensor, turn: Turn) -> torch.Tensor:
    """[R, heads, T, width] rotated by their places."""
    cos, sin = turn
    return (numbers * cos).add_(numbers.roll(numbers.shape[-1] // 2, -1).mul_(sin))


def _parted(factors: torch.Tensor) -> Turn:
    cos, sin = factors[:, None].chunk(2, dim=-1)
    return cos, sin
