"""Answers verified from drafts: one forward pass instead of one per token, where a draft is what the model would say.

A draft's tokens are read in the same pass as the prompt. A token stands only where the model's lead for it is far
beyond the noise that other shapes make; `InDoubt` is raised elsewhere, and the answer is then decoded plainly. So the
tokens are those of plain greedy decoding whatever the drafts are, and drafts may come from anyone.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from robustrag_integrations.models.local.shared import SharedBatch
from robustrag_integrations.models.local.trie import TokenTrie
from robustrag_integrations.models.noise import LOGIT_NOISE

CLEAR_LEAD = 2 * LOGIT_NOISE  # of the best logit over the next that stands, as a share of the largest (at least 1)
MOST_NODES = 64  # tokens of drafts in one pass; beyond, reading them costs what they save


class InDoubt(Exception):
    """A token's lead is so small that other shapes could have decided otherwise."""


def drafted_tokens(batch: SharedBatch, drafts: TokenTrie) -> Iterator[int]:
    """The greedy answer's tokens, one by one, without end: whoever takes them stops.

    Args:
        batch: one prompt, not read yet.
        drafts: what may follow it.

    Raises:
        InDoubt: instead of a token that is not clear; those before it stand.
    """
    taken: list[int] = []
    node: int | None = -1
    best, clear = _choices(batch.read(drafts)[0])
    batch.forget_last(len(drafts))
    while node is not None:
        token = _clear(best[node + 1], clear[node + 1])
        yield token
        taken.append(token)
        node = drafts.child(node, token)
    logits = batch.append_all(taken)
    while True:
        [token], [stands] = _choices(logits)
        yield _clear(token, stands)
        logits = batch.append([token])


def _choices(logits: torch.Tensor) -> tuple[list[int], list[bool]]:
    """The best token after each position, and whether it is clear."""
    return logits.argmax(-1).tolist(), clear_leads(logits, CLEAR_LEAD)


def clear_leads(logits: torch.Tensor, least: float) -> list[bool]:
    """Per row, whether the best logit leads by this much at least, as a share of the largest (taken as at least 1)."""
    best = logits.topk(2, dim=-1).values
    clear = best[:, 0] - best[:, 1] >= least * logits.abs().amax(-1).clamp(min=1)  # not where one is not a number
    found: list[bool] = clear.tolist()
    return found


def _clear(token: int, stands: bool) -> int:
    if not stands:
        raise InDoubt
    return token
