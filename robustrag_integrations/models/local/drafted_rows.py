"""Answers of several prompts verified from drafts, a pass or two in place of a step for every token.

A multiple-choice question says beforehand what most replies will be, and a short answer is mostly words of its passage.
Once the prompts are read, the first token of each is known; then what may follow it is read in one pass, for all rows,
and again behind the tokens of rows that go on otherwise. The likely one of several drafts can be read together with
the prompt. A token stands only where the model's lead for it is far beyond the noise that such passes make, as measured
on the model's first prompts with drafts. Where a row is in doubt, or drafts are of little use, all rows take plain
steps as if there had been no drafts.

So a row's answer is that of plain steps whatever the other rows say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice

import torch

from robustrag_integrations.models.local.drafts import MEASURED, clear_leads, logit_noise
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.guesses import Guesses
from robustrag_integrations.models.local.shared import MOST_OF_A_ROW, SharedBatch
from robustrag_integrations.models.local.trie import TokenTrie

_AT_ONCE = 256  # tokens of a pass, all of whose logits are computed
_MOST_PASSES = 6  # behind the prompts; a row about which nobody knows more takes one for every token
_CANNOT = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)


def answered(
    batch: SharedBatch,
    begun: Sequence[Sequence[int]],
    guesses: Sequence[Guesses],
    add: Callable[[int, int], bool],
    most: int,
    lead: float,
) -> bool:
    """Find the greedy answers of all rows.

    Args:
        batch: prompts that were read; they stay as they are.
        begun: per row, its first token or more, each of which is added.
        guesses: per row, what may follow.
        add: is given a row and its next token; says whether its answer is complete by that.
        most: tokens of an answer.
        lead: of the best logit over the next with which a token stands, as a share of the largest logit.

    Returns:
        Whether all answers are complete; what was added counts for nothing otherwise.
    """
    taken = [[*tokens] for tokens in begun]
    left = [row for row, tokens in enumerate(begun) if not any(add(row, token) for token in tokens)]
    room = min(MOST_OF_A_ROW, most - 1)
    for _ in range(_MOST_PASSES):
        if not left:
            return True
        if any(len(taken[row]) > room for row in left):
            return False
        known = {row: guesses[row].after(taken[row], room) for row in left}
        if 2 * sum(trie is None for trie in known.values()) > len(taken):
            return False
        tries = {row: trie or TokenTrie([taken[row]]) for row, trie in known.items()}
        for row, best, clear in _choices(batch, tries, lead):
            if not (following := _walk(tries[row], taken[row], best, clear)):
                return False
            taken[row] += following
            if any(add(row, token) for token in following):
                left.remove(row)
        if 2 * len(left) > len(taken):
            return False
    return not left


def begun_with(logits: Sequence[torch.Tensor], behind: Sequence[Sequence[int]], lead: float) -> list[list[int]] | None:
    """The tokens with which each answer begins: those of its draft as far as it goes that way, and one more.

    Args:
        logits: per row [1 + tokens, V], what follows the prompt and each token of the draft.
        behind: per row, the tokens of its draft.
        lead: as for `answered`.

    Returns:
        Per row a token or more; None where one of them is in doubt.
    """
    every = torch.cat([*logits])
    best, clear = iter(every.argmax(-1).tolist()), iter(clear_leads(every, lead))
    begun = []
    for tokens in behind:
        mine, stands = (list(islice(found, 1 + len(tokens))) for found in (best, clear))
        same = next((at for at, pair in enumerate(zip(mine, tokens, strict=False)) if pair[0] != pair[1]), len(tokens))
        if not all(stands[: same + 1]):
            return None
        begun.append(mine[: same + 1])
    return begun


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
    said, steps = _said(batch, logits, most)
    try:
        return logit_noise(_behind(batch, said), steps)
    except _CANNOT:
        return math.inf


def noise_ahead(plain: SharedBatch, ahead: SharedBatch, most: int) -> float:
    """`measured_noise` of prompts that are read together with a draft, and of drafts behind them.

    Args:
        plain, ahead: the same prompts, not read yet.
        most: how many tokens may follow.
    """
    logits = plain.open().logits
    said, steps = _said(plain, logits, most)
    try:
        got = ahead.open_ahead(said)
        if got is None:
            return math.inf
        expected = torch.cat([logits[:, None], steps], dim=1)
        return max(logit_noise(torch.stack(got), expected), logit_noise(_behind(ahead, said), steps))
    except _CANNOT:
        return math.inf


def _said(batch: SharedBatch, logits: torch.Tensor, most: int) -> tuple[list[tuple[int, ...]], torch.Tensor]:
    """Per row what the model says by itself; [rows, tokens, V] logits behind each token. The batch stays as it is."""
    plain, steps, said = batch.fork(), list[torch.Tensor](), list[list[int]]()
    while len(said) < min(MEASURED, most):
        said.append(logits.argmax(-1).tolist())
        logits = plain.append(said[-1])
        steps.append(logits)
    return list(zip(*said, strict=True)), torch.stack(steps, dim=1)


def _behind(batch: SharedBatch, said: Sequence[Sequence[int]]) -> torch.Tensor:
    """[rows, tokens, V] logits behind these tokens of each row, read behind the prompts."""
    tries = {row: TokenTrie([tokens]) for row, tokens in enumerate(said)}
    return torch.cat([logits for _, logits in _read(batch, tries)])[:, : len(said[0])]


def _choices(
    batch: SharedBatch, tries: Mapping[int, TokenTrie], lead: float
) -> Iterator[tuple[int, list[int], list[bool]]]:
    """Some rows, the best token after each node of theirs, and whether it is clear."""
    for start, logits in _read(batch, tries):
        best, clear = logits.argmax(-1).tolist(), iter(clear_leads(logits.flatten(0, 1), lead))
        for row, tokens in enumerate(best, start):
            stand = list(islice(clear, len(tokens)))
            if row in tries:
                yield row, tokens, stand


def _read(batch: SharedBatch, tries: Mapping[int, TokenTrie]) -> Iterator[tuple[int, torch.Tensor]]:
    """What follows the nodes of these rows and of those between, in passes of a bounded number of tokens.

    Yields:
        The first row of a pass, and its logits [rows, nodes, V].
    """
    most, start, rows = min(_AT_ONCE, batch.at_once), 0, sorted(tries)
    every = [tries.get(row) or TokenTrie([[0]]) for row in range(rows[0], rows[-1] + 1)]
    while start < len(every):
        widest = accumulate(map(len, every[start:]), max)
        count = max(1, sum(read * width <= most for read, width in enumerate(widest, 1)))
        stop_if_given_up()
        yield rows[0] + start, batch.drafted(rows[0] + start, every[start : start + count])
        start += count


def _walk(trie: TokenTrie, taken: Sequence[int], best: Sequence[int], clear: Sequence[bool]) -> list[int]:
    """What follows the tokens so far, as far as it is clear and something was read behind it."""
    tokens, node = list[int](), trie.path(taken)[-1]
    while clear[node]:
        tokens.append(best[node])
        if (following := trie.child(node, tokens[-1])) is None:
            break
        node = following
    return tokens
