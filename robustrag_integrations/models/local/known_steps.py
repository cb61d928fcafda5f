"""Decoding steps of one prompt whose tokens are known beforehand, taken layer by layer: the same bits in less time.

Each token's part of a layer is computed by itself, in the calls and shapes of a step that reads this token alone. But
every weight serves all tokens before the next weight does: it comes from memory once, then from the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from robustrag_integrations.models.local.alone import Alone
from robustrag_integrations.models.local.attending import AttendingCache
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.drafted_row import OF_SINGLE_NUMBERS
from robustrag_integrations.models.local.joint import attended_pass, layer_kinds
from robustrag_integrations.models.local.kernels import for_heads
from robustrag_integrations.models.local.key_values import Pair
from robustrag_integrations.models.local.products import linear
from robustrag_integrations.models.local.slab import RowCache
from robustrag_integrations.models.local.torch_calls import TorchCalls

_OF_ROWS = (*OF_SINGLE_NUMBERS, "layer_norm", "linear", "mean", "rms_norm", "rsqrt", "sum", "var")
_PLACES = {**dict.fromkeys(_OF_ROWS, 0), "addmm": 1}  # which argument of a function has the rows
_PART = 2**20  # numbers of a weight that serve all tokens before the next ones do: they stay in the outer cache
_TILE = 64  # outputs that kernels compute together: parts are multiples of it


@torch.inference_mode()
def read_known(lm: CausalLM, prompt: Alone, tokens: Sequence[int]) -> torch.Tensor:
    """Append tokens.

    Args:
        lm: the model; each token sees all before it.
        prompt: what was read.
        tokens: two or more.

    Returns:
        [tokens, V] float32 logits of what follows each.
    """
    count, device = len(tokens), lm.device
    ids = torch.tensor(list(tokens), device=device)[:, None]
    places = torch.arange(prompt.tokens, prompt.tokens + count, device=device)[:, None]
    cache = _KnownSteps(prompt.cache, layer_kinds(lm))
    with _RowByRow(count):
        logits = attended_pass(lm, ids, places, cache)[:, -1]
    prompt.tokens += count
    return logits


def has_bits_of_steps(lm: CausalLM, prompt: Alone, tokens: Sequence[int]) -> bool:
    """Whether tokens have the logits, keys and values of plain steps when they are read so.

    Args:
        lm: the model.
        prompt: what was read; it stays as it is.
        tokens: two or more that follow it.
    """
    stepping, knowing = prompt.fork(), prompt.fork()
    wanted = torch.cat([stepping.append([token]) for token in tokens])
    try:
        found = read_known(lm, knowing, tokens)
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False  # its own code cannot take such a pass
    kept = zip((wanted, *stepping.cached()), (found, *knowing.cached()), strict=True)
    return all(torch.equal(one, other) for one, other in kept)


class _KnownSteps(AttendingCache):
    """Writes columns into a prompt's cache, one token after the other, and has each attend when it is written."""

    as_for = 1  # rows to choose the kernels of products for

    def __init__(self, row: RowCache, kinds: Sequence[str]) -> None:
        super().__init__(kinds)
        self.capacity, self._row = row.capacity, row
        self._layer = 0
        self._new: Pair = (torch.empty(0), torch.empty(0))

    def keep(self, new: Pair, layer: int) -> None:
        """Note the new columns of a layer."""
        self._new, self._layer = new, layer

    def attend(self, query: torch.Tensor, new: Pair, scale: float | None) -> torch.Tensor:
        """Each token's attention to what stands before it, and itself."""
        found, heads = [], query.shape[1]
        with torch._C.DisableTorchFunction():
            for asking, key, value in zip(*map(_rows, (query, *self._new)), strict=True):
                pair, attention = self._row.written(key, value, self._layer)
                keys, values = (for_heads(t, heads // t.shape[1]) for t in pair)
                found.append(attention(asking, keys, values, scale=scale))
            return torch.cat(found)

    @staticmethod
    def product(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """`linear` of each token by itself, in parts of a weight that stay in the cache."""
        with torch._C.DisableTorchFunction():  # nobody has to see thousands of calls
            rows, size = _rows(inputs), max(1, _PART // weight.shape[1] // _TILE) * _TILE
            starts = range(size, len(weight) - size + 1, size)
            parts = zip(*(t.tensor_split(tuple(starts)) for t in (weight, bias) if t is not None), strict=True)
            computed = [torch.cat([linear(row, *part, whole=weight.numel()) for row in rows]) for part in parts]
            return torch.cat(computed, dim=-1)


class _RowByRow(TorchCalls):
    """Computes what does not come out of each number by itself, exactly rounded, for each row by itself."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def call(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """One call of a function of torch."""
        place = _PLACES.get(getattr(func, "__name__", ""), len(args))
        rows = args[place] if place < len(args) else None
        if not isinstance(rows, torch.Tensor) or not rows.ndim or len(rows) != self._rows:
            return func(*args, **kwargs)
        before, after = args[:place], args[place + 1 :]
        return torch.cat([func(*before, row, *after, **kwargs) for row in _rows(rows)])


def _rows(numbers: torch.Tensor) -> list[torch.Tensor]:
    """Each row in memory of its own: where one begins may decide in which order a kernel sums up."""
    return [row.clone() for row in numbers.split(1)]
