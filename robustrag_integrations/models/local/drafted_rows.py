"""Answers of several prompts verified from drafts in one pass, in place of a step for every token.

A multiple-choice question says beforehand what most replies will be. Once the prompts are read, the first token of each
is known; then all rows' drafts that begin with it are read in one pass, behind each other. A token stands only where
the model's lead for it is far beyond the noise that such a pass makes, as measured on the model's first prompts with
drafts. Where a row says something else, or is in doubt, all rows take plain steps as if there had been no drafts.

So a row's answer is that of plain steps whatever the other rows say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

import torch

from robustrag_integrations.models.local.drafts import MEASURED, clear_leads, logit_noise
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.shared import MOST_OF_A_ROW, SharedBatch
from robustrag_integrations.models.local.trie import TokenTrie

_AT_ONCE = 256  # tokens of a pass, all of whose logits are computed


def drafted_rows(
    batch: SharedBatch, first: Sequence[int], drafts: Sequence[Sequence[int]], lead: float
) -> list[list[int]] | None:
    """Each row's greedy tokens, from the first to the one after the last that a draft has.

    Args:
        batch: prompts that were read; they stay as they are.
        first: per row, its first token.
        drafts: tokens of answers that may come.
        lead: of the best logit over the next with which a token stands, as a share of the largest logit.

    Returns:
        Per row its tokens, as far as they are clear; None where a row begins like no draft.
    """
    tries: dict[int, TokenTrie] = {}
    for draft in drafts:
        if draft:
            tries.setdefault(draft[0], TokenTrie()).add(draft, MOST_OF_A_ROW)
    if not tries.keys() >= set(first):
        return None
    rows = zip(first, _read(batch, [tries[token] for token in first]), strict=True)
    return [_walk(tries[token], token, logits.argmax(-1).tolist(), clear_leads(logits, lead)) for token, logits in rows]


def measured_noise(batch: SharedBatch, logits: torch.Tensor, most: int) -> float:
    """How far logits read in such a pass are from those of plain steps, as a share of the largest.

    The drafts are what the model says by itself, so no passage chooses where the noise is measured.

    Args:
        batch: prompts that were read; they stay as they are.
        logits: [rows, V], what follows them.
        most: how many tokens may follow.

    Returns:
        Infinity where the model cannot be read in such a pass.
    """
    plain, steps, said = batch.fork(), list[torch.Tensor](), list[list[int]]()
    while len(said) < min(MEASURED, most):
        said.append(logits.argmax(-1).tolist())
        logits = plain.append(said[-1])
        steps.append(logits)
    try:
        got = torch.stack([*_read(batch, [TokenTrie([tokens]) for tokens in zip(*said, strict=True)])])
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return math.inf
    return logit_noise(got, torch.stack(steps, dim=1))


def _read(batch: SharedBatch, tries: Sequence[TokenTrie]) -> Iterator[torch.Tensor]:
    """Per row the logits [nodes, V] of what follows each node, from passes of a bounded number of tokens."""
    most, start = min(_AT_ONCE, batch.at_once), 0
    while start < len(tries):
        ends = accumulate(map(len, tries[start:]))
        count = max(1, sum(end <= most for end in ends))
        stop_if_given_up()
        yield from batch.drafted(start, tries[start : start + count])
        start += count


def _walk(trie: TokenTrie, first: int, best: Sequence[int], clear: Sequence[bool]) -> list[int]:
    """The tokens from the first on, while they are clear and a draft goes on."""
    tokens, node = [first], trie.child(-1, first)
    while node is not None and clear[node]:
        tokens.append(best[node])
        node = trie.child(node, tokens[-1])
    return tokens
