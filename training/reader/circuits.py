"""Heads that are there from the first step.

Looking something up in a text takes a few kinds of attention heads, which a transformer finds only after millions of
tokens (and then rather suddenly). Here they are written into the initial weights, roughly; training refines them. The
residual stream starts out in parts that do not disturb each other:

- identity: which token this is;
- back: which tokens came one and two places before (layer 0, heads 0 and 1);
- bag: which tokens came lately, in a narrow and a wide window (layer 0, heads 2 and 3).

Two kinds of later heads read them. A "same bag" head attends to positions with alike recent tokens, that is from a
question to the sentence about the same thing. An "induction" head attends to what followed an earlier occurrence of the
last two tokens. Both copy the identity they find, which the tied embedding turns into a prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from training.reader.model import Block, Reader, rotary_frequencies

_SLOW = 0.006  # radians per token below which a rotary pair ignores positions within a passage


@dataclass(frozen=True)
class _Window:
    """A layer-0 head that looks at a window of earlier tokens.

    Attributes:
        centre: how far back the window's middle is, in tokens.
        amplitudes: attention score by rotary pair at the centre: fast pairs make the window sharp.
        tokens: roughly how many tokens share the attention.
        share: share of the stream's width that receives what it finds.
    """

    centre: float
    amplitudes: dict[int, float]
    tokens: float
    share: float


_IDENTITY_SHARE = 1 / 3
_BACK = (
    _Window(1, {0: 7, 1: 5, 2: 3, 3: 2}, 1, 5 / 24),
    _Window(2, {0: 7, 1: 5, 2: 3, 3: 2}, 1, 4 / 24),
)
_BAGS = (
    _Window(5, {3: 5, 4: 3, 5: 3}, 8, 3.5 / 24),
    _Window(8, {4: 8, 5: 3, 6: 3}, 14, 3.5 / 24),
)
_PUSH_PAIRS, _PUSH = (4, 5, 6), 3.0


@dataclass(frozen=True)
class _Part:
    """A part of the stream, and how identities are mapped into it: `map` is [its width, identity width]."""

    at: slice
    map: Tensor


def _rows(head: int, width: int) -> slice:
    return slice(head * width, (head + 1) * width)


def _orthogonal(rows: int, columns: int) -> Tensor:
    matrix = torch.empty(rows, columns)
    torch.nn.init.orthogonal_(matrix)
    return matrix


@torch.no_grad()
def install(model: Reader) -> None:
    """Write the circuits into a freshly initialised model of four heads; consumes torch's global randomness."""
    width = model.config.width
    identity = round(width * _IDENTITY_SHARE)
    model.embedding[:, :identity] = torch.randn(model.config.vocab_size, identity)
    model.embedding[:, identity:] *= 0.1
    parts, start = [], identity
    for head, window in enumerate((*_BACK, *_BAGS)):
        size = min(int(width * window.share), model.config.head_width)
        part = _Part(slice(start, start + size), _orthogonal(size, identity))
        _install_window(model, head, window, part)
        parts.append(part)
        start += size
    first, second, *bags = parts
    blocks = model.layers
    for block in blocks[1:]:
        _install_same_bag(model, block, 0, bags)
    for block in blocks[-2:]:
        _install_induction(model, block, 1, first, second)


def _parts_of(block: Block) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    q, k, v = block.qkv.chunk(3)
    q_bias, k_bias, v_bias = block.qkv_bias.chunk(3)
    return (q, k, v), (q_bias, k_bias, v_bias)


def _install_window(model: Reader, head: int, window: _Window, part: _Part) -> None:
    config, block = model.config, model.layers[0]
    pairs, at = config.head_width // 2, _rows(head, config.head_width)
    (q, k, v), (q_bias, k_bias, _) = _parts_of(block)
    frequencies = rotary_frequencies(config)
    query, key = torch.zeros(config.head_width), torch.zeros(config.head_width)
    for pair, amplitude in window.amplitudes.items():
        gain = math.sqrt(amplitude * math.sqrt(config.head_width))
        angle = -window.centre * float(frequencies[pair])
        key[pair] = gain
        query[pair], query[pair + pairs] = gain * math.cos(angle), gain * math.sin(angle)
    q[at], k[at], v[at] = 0.02 * q[at], 0.02 * k[at], 0.0
    q_bias[at], k_bias[at] = query, key
    size, identity = part.map.shape
    v[at][:size, :identity] = part.map
    # The normalised stream is larger than the identity by the root of the width it does not use yet.
    scale = math.sqrt(window.tokens * identity / config.width)
    block.out[:, at] = 0.0
    block.out[part.at, at.start : at.start + size] = scale * torch.eye(size)


def _slow_dimensions(model: Reader) -> list[int]:
    """The dimensions of a head that hardly turn with the position."""
    slow = (rotary_frequencies(model.config) < _SLOW).nonzero().flatten().tolist()
    return [*slow, *(i + model.config.head_width // 2 for i in slow)]


def _copy_identity(model: Reader, block: Block, head: int, strength: float) -> None:
    config = model.config
    at = _rows(head, config.head_width)
    identity = round(config.width * _IDENTITY_SHARE)
    (_, _, v), _ = _parts_of(block)
    copied = _orthogonal(config.head_width, identity)
    v[at] = 0.0
    v[at][:, :identity] = copied
    block.out[:, at] = 0.0
    block.out[:identity, at] = strength * copied.T


def _install_same_bag(model: Reader, block: Block, head: int, bags: list[_Part], gain: float = 1.5) -> None:
    at = _rows(head, model.config.head_width)
    (q, k, _), (q_bias, k_bias, _) = _parts_of(block)
    q[at], k[at] = 0.1 * q[at], 0.1 * k[at]
    # A position's own neighbours have nearly the same bag: look further back.
    push = math.sqrt(_PUSH * math.sqrt(model.config.head_width))
    for pair in _PUSH_PAIRS:
        q_bias[at.start + pair], k_bias[at.start + pair] = -push, push
    dimensions = _slow_dimensions(model)
    for i, dimension in enumerate(dimensions):
        bag = bags[i % len(bags)]
        source = bag.at.start + (i // len(bags)) % (bag.at.stop - bag.at.start)
        q[at.start + dimension, source] = k[at.start + dimension, source] = gain
    _copy_identity(model, block, head, strength=1.0)


def _install_induction(model: Reader, block: Block, head: int, first: _Part, second: _Part, gain: float = 1.9) -> None:
    at = _rows(head, model.config.head_width)
    (q, k, _), _ = _parts_of(block)
    q[at], k[at] = 0.0, 0.0
    dimensions = _slow_dimensions(model)
    identity = first.map.shape[1]
    # The token before, as layer 0 stored it, mapped on as if it were two before.
    through_first = second.map @ first.map.T
    for i, dimension in enumerate(dimensions):
        row = at.start + dimension
        if i % 2:
            q[row, :identity], k[row, first.at.start + i // 2] = gain * first.map[i // 2], gain
        else:
            q[row, first.at], k[row, second.at.start + i // 2] = gain * through_first[i // 2], gain
    _copy_identity(model, block, head, strength=2.5)
