"""Rows of text to batches of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer

from training.reader.model import Batch
from training.reader.rows import Row
from training.reader.tokenizer import EOS, PAD

LONGEST = 1200
_SHARED, _PADDING = 0, -1


@dataclass(frozen=True)
class PackedRow:
    """One row as token ids.

    Attributes:
        tokens: ids of the prefix and of all branches, one after the other.
        positions: each branch continues at the position where the prefix ended.
        segments: 0 for the prefix, 1, 2, ... for the branches: a token sees its own segment and the prefix.
        answers: (task, first, last) of each answer: tokens first+1 to last are predicted at first to last-1.
    """

    tokens: list[int]
    positions: list[int]
    segments: list[int]
    answers: list[tuple[str, int, int]]


def pack(tokenizer: Tokenizer, rows: Sequence[Row]) -> list[PackedRow]:
    """Tokenise rows."""
    texts = [t for row in rows for t in (row.prefix, *(x for b in row.branches for x in (b.tail, f" {b.answer}")))]
    encoded = iter(tokenizer.encode_batch(texts, add_special_tokens=False))
    return [_pack_row(row, [next(encoded).ids for _ in range(1 + 2 * len(row.branches))]) for row in rows]


def _pack_row(row: Row, pieces: list[list[int]]) -> PackedRow:
    tokens = list(pieces[0])
    shared = len(tokens)
    positions, segments = list(range(shared)), [_SHARED] * shared
    answers = []
    for i, branch in enumerate(row.branches):
        tail, answer = pieces[1 + 2 * i], [*pieces[2 + 2 * i], EOS]
        first = len(tokens) + len(tail) - 1
        answers.append((branch.task, first, first + len(answer)))
        tokens += tail + answer
        positions += range(shared, shared + len(tail) + len(answer))
        segments += [i + 1] * (len(tail) + len(answer))
    return PackedRow(tokens, positions, segments, answers)


def batches(rows: Sequence[PackedRow], budget: int, random: Random) -> list[list[PackedRow]]:
    """Shuffled batches of rows of similar length, each of at most `budget` tokens with padding."""
    kept = sorted((row for row in rows if len(row.tokens) <= LONGEST), key=lambda row: len(row.tokens))
    made: list[list[PackedRow]] = [[]] if kept else []
    for row in kept:
        if made[-1] and len(row.tokens) * (len(made[-1]) + 1) > budget:
            made.append([])
        made[-1].append(row)
    random.shuffle(made)
    return made


def collate(rows: Sequence[PackedRow]) -> Batch:
    """Pad rows to one length; only answers are learned."""
    length = max(len(row.tokens) for row in rows)
    tokens = torch.tensor([row.tokens + [PAD] * (length - len(row.tokens)) for row in rows])
    positions = torch.tensor([row.positions + [0] * (length - len(row.tokens)) for row in rows])
    segments = torch.tensor([row.segments + [_PADDING] * (length - len(row.tokens)) for row in rows])
    seen = (segments[:, None, :] == _SHARED) | (segments[:, None, :] == segments[:, :, None])
    seen &= torch.ones(length, length, dtype=torch.bool).tril()
    mask = torch.zeros(seen.shape).masked_fill_(~seen, -1e9)[:, None]
    predict = [i * length + p for i, row in enumerate(rows) for _, a, b in row.answers for p in range(a, b)]
    at = torch.tensor(predict)
    return Batch(tokens, positions, mask, at, tokens.reshape(-1)[at + 1])
