"""Answers verified from drafts: a pass or two instead of one per token, where a draft is what the model would say.

In half precision, where steps of several rows give each the bits of a plain step, the prompt is read, and then all
drafts that begin with its first token in one more pass: what follows each token is what a plain step says.

In single precision a draft's tokens are read in the same pass as the prompt. A token stands only where the model's lead
for it is far beyond the noise that other shapes make, as measured on this model's first final prompt; `InDoubt` is
raised elsewhere, and the answer is then decoded plainly.

So the tokens are those of plain greedy decoding whatever the drafts are, and drafts may come from anyone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from robustrag_integrations.models.local.alone import Alone
from robustrag_integrations.models.local.batch import Steps
from robustrag_integrations.models.local.drafted_row import DraftedRow
from robustrag_integrations.models.local.trie import TokenTrie
from robustrag_integrations.models.noise import LOGIT_NOISE, noise_bound

MEASURED = 8  # tokens of the model's own answer at which the noise is measured


class InDoubt(Exception):
    """A token's lead is so small that other shapes could have decided otherwise."""


def measured_noise(plain: Steps, drafted: Alone, most: int) -> float:
    """How far logits read in one pass with a draft are from those of plain decoding, as a share of the largest.

    The draft is what the model says by itself, so no passage chooses where the noise is measured.

    Args:
        plain: one prompt, not read yet.
        drafted: the same prompt, not read yet.
        most: how many tokens may follow it.
    """
    steps = [plain.open().logits]
    tokens: list[int] = []
    while len(tokens) < min(MEASURED, most):
        tokens.append(int(steps[-1].argmax(-1)[0]))
        steps.append(plain.append(tokens[-1:]))
    return logit_noise(drafted.read(TokenTrie([tokens]))[0], torch.cat(steps))


def logit_noise(got: torch.Tensor, expected: torch.Tensor) -> float:
    """How far logits [..., V] are from the expected ones at most, as a share of the largest (taken as at least 1)."""
    gaps = (got - expected).abs().amax(-1) / expected.abs().amax(-1).clamp(min=1)
    return float(gaps.max().nan_to_num(nan=math.inf))


def lead_needed(measured: float) -> float | None:
    """The lead with which a token stands, as a share of the largest logit; None where drafts are of no use."""
    bound = noise_bound(measured)
    return None if bound is None else 2 * max(LOGIT_NOISE, bound)


def drafted_tokens(batch: Alone, drafts: TokenTrie, lead: float) -> Iterator[int]:
    """The greedy answer's tokens, one by one, without end: the caller stops.

    Args:
        batch: one prompt, not read yet.
        drafts: what may follow it.
        lead: of the best logit over the next with which a token stands, as a share of the largest logit.

    Raises:
        InDoubt: instead of a token that is not clear; those before it stand.
    """
    taken: list[int] = []
    node: int | None = -1
    best, clear = _choices(batch.read(drafts)[0], lead)
    batch.forget_last(len(drafts))
    while node is not None:
        token = _clear(best[node + 1], clear[node + 1])
        yield token
        taken.append(token)
        node = drafts.child(node, token)
    logits = batch.append_all(taken)
    while True:
        [token], [stands] = _choices(logits, lead)
        yield _clear(token, stands)
        logits = batch.append([token])


def exact_tokens(row: DraftedRow, drafts: TokenTrie) -> Iterator[int]:
    """The greedy answer's tokens, one by one, without end, where drafts have the bits of plain steps.

    Args:
        row: one prompt, not read yet.
        drafts: what may follow it.
    """
    yield (token := int(row.open().logits.argmax(-1)[0]))
    if (first := drafts.child(-1, token)) is not None:
        below = drafts.below(first)
        best: list[int] = row.read(below).argmax(-1).tolist()
        node, following = 0, below.child(0, best[0])
        yield best[0]
        while following is not None:
            node, following = following, below.child(following, best[following])
            yield best[node]
        row.take(below, node)
        token = best[node]
    while True:
        [token] = row.append([token]).argmax(-1).tolist()
        yield token


def _choices(logits: torch.Tensor, lead: float) -> tuple[list[int], list[bool]]:
    """The best token after each position, and whether it is clear."""
    return logits.argmax(-1).tolist(), clear_leads(logits, lead)


def clear_leads(logits: torch.Tensor, least: float) -> list[bool]:
    """Per row, whether the best logit leads by this much at least, as a share of the largest (taken as at least 1).

    None does where a logit is infinite, or not a number.
    """
    best, largest = logits.topk(2, dim=-1).values, logits.abs().amax(-1)
    clear = (best[:, 0] - best[:, 1] >= least * largest.clamp(min=1)) & largest.isfinite()
    found: list[bool] = clear.tolist()
    return found


def _clear(token: int, stands: bool) -> int:
    if not stands:
        raise InDoubt
    return token
