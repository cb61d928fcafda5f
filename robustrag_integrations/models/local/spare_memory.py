"""Memory of caches that are over, kept for the next.

A system gives out fresh pages for several times what writing to them costs: with a small model a tenth of an answer.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from math import prod

import torch

_MOST_BYTES = 2**26  # of a buffer that is kept; the larger a model, the less do fresh pages matter
_BUFFERS = 2
_WHOLE = 32  # numbers: every part of a buffer begins at a multiple of so many, which is a whole line of memory


class SpareMemory:
    """A few buffers on the CPU. Safe to use from threads, and by what Python runs when an object is gone."""

    def __init__(self) -> None:
        self._spare: deque[torch.Tensor] = deque(maxlen=_BUFFERS)  # without a lock, which its holder might wait for

    def clear(self) -> None:
        """Give all of it back to the system."""
        self._spare.clear()

    def lend(self, owner: object, shapes: Sequence[Sequence[int]], dtype: torch.dtype) -> Iterator[torch.Tensor]:
        """Tensors of these shapes, which hold anything, until their owner is gone; no other may use them any longer."""
        sizes = [-(-prod(shape) // _WHOLE) * _WHOLE for shape in shapes]
        buffer = self._buffer(sum(sizes), dtype)
        if buffer.nbytes <= _MOST_BYTES:
            weakref.finalize(owner, self._spare.append, buffer).atexit = False
        for part, shape in zip(buffer[: sum(sizes)].split(sizes), shapes, strict=True):
            yield part[: prod(shape)].view(*shape)

    def _buffer(self, numbers: int, dtype: torch.dtype) -> torch.Tensor:
        """One that is spare and large enough; else a new one, with some room so that it may be so for the next."""
        for _ in range(_BUFFERS):
            try:
                found = self._spare.popleft()
            except IndexError:
                break
            if found.dtype == dtype and len(found) >= numbers:
                return found
        step = 2 ** max(0, numbers.bit_length() - 3)
        return torch.empty(-(-numbers // step) * step, dtype=dtype)
