"""Answers of several prompts verified from drafts in one pass, in place of a step for every token.

A multiple-choice question says beforehand what most replies will be. Once the prompts are read, the first token of each
is known; then all rows' drafts that begin with it are read in one pass, behind each other. A token stands only where
the model's lead for it is far beyond the noise that other shapes make, as with `drafts`. Where a row says something
else, or is in doubt, all rows take plain steps as if there had been no drafts.

So a row's answer is that of plain steps whatever the other rows say, and the shape of the pass follows from the drafts.
"""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.models.local.drafts import clear_leads
from robustrag_integrations.models.local.shared import SharedBatch
from robustrag_integrations.models.local.trie import TokenTrie

MOST_OF_A_ROW = 16  # tokens; beyond, reading them for all rows costs what they save


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
        Per row its tokens, as far as they are clear; None where drafts are of no use.
    """
    tries: dict[int, TokenTrie] = {}
    for draft in drafts:
        if draft:
            tries.setdefault(draft[0], TokenTrie()).add(draft, MOST_OF_A_ROW)
    if not tries.keys() >= set(first):
        return None
    nodes = max(map(len, tries.values()))
    for token, trie in tries.items():
        trie.add([token + 1 if token == 0 else 0] * (nodes - len(trie)))
    logits = batch.drafted([tries[token] for token in first])
    if logits is None:
        return None
    best, flat = logits.argmax(-1).tolist(), clear_leads(logits.flatten(0, 1), lead)
    clear = [flat[start : start + nodes] for start in range(0, len(flat), nodes)]
    return [_walk(tries[token], token, *row) for token, *row in zip(first, best, clear, strict=True)]


def _walk(trie: TokenTrie, first: int, best: Sequence[int], clear: Sequence[bool]) -> list[int]:
    """The tokens from the first on, while they are clear and a draft goes on."""
    tokens, node = [first], trie.child(-1, first)
    while node is not None and clear[node]:
        tokens.append(best[node])
        node = trie.child(node, tokens[-1])
    return tokens
