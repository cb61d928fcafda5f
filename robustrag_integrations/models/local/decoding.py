"""What batches are read for: greedy texts, decoding sessions, and how likely given replies are."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import torch

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import (
    LEAST_NOISE,
    DecodingSession,
    DecodingTree,
    Distributions,
    Opening,
    Response,
    Scores,
    TokenCodec,
)
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.batches import Batch, PlainPrompt, SinglePrompt
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.reading import PromptReader
from robustrag_integrations.models.local.token_trees import Stem, TokenTree, clear_leads, known_noise
from robustrag_integrations.replies.confidence import LOWEST
from robustrag_integrations.replies.reply import Ending, Piece

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Watch = Callable[[torch.Tensor], None]  # sees the [rows, V] logits of every step
Tokens = Sequence[int]


@dataclass(frozen=True)
class GreedyWriter:
    """Writes answers with the most probable token at each step.

    Attributes:
        reader: lays out prompts.
        codec: tokens to text.
        stop: strings that end an answer.
        max_new_tokens: the longest answer.
    """

    reader: PromptReader
    codec: TokenCodec
    stop: tuple[str, ...]
    max_new_tokens: int

    def together(
        self, prompts: Sequence[Encoded], longest: Sequence[int], watch: Watch | None = None
    ) -> list[Response]:
        """Answer all prompts as one batch, until the last answer is complete; a complete one stays in the batch.

        Args:
            prompts: the prompts to answer.
            longest: per prompt, the most tokens that it could have had, whatever its passage.
            watch: sees the logits of every step.

        Returns:
            Per prompt, its text, finish reason and log-probabilities: those of its tokens, of the one that ended it,
            too; None if one of them is NaN.
        """
        batch, doubt = self._batch(prompts, longest)
        texts = [IncrementalDetokenizer(self.codec, self.stop) for _ in prompts]
        done, clear = [False] * len(texts), [True] * len(texts)
        logprobs: list[list[float]] = [[] for _ in texts]
        logits = batch.open().logits
        for step in range(self.max_new_tokens):
            if watch is not None:
                watch(logits)
            tokens = logits.argmax(-1).tolist()
            leads = clear_leads(logits, 2 * doubt) if doubt else clear
            for row, token in enumerate(tokens):
                if not done[row]:
                    logprobs[row].append(_logprob(logits[row], token))
                    clear[row] = clear[row] and leads[row]
                    done[row] = not clear[row] or texts[row].take(token)
            if all(done) or step == self.max_new_tokens - 1:
                break
            stop_if_cancelled()
            logits = batch.append(tokens)
        for text in texts:
            text.finish()
        return [
            Response(
                text.shown,
                finish=text.finish_reason,
                logprobs=tuple(found) if all(value <= 0 for value in found) else None,
            )
            if sure
            else self.together([prompt], [most])[0]
            for text, found, sure, prompt, most in zip(texts, logprobs, clear, prompts, longest, strict=True)
        ]

    def _batch(self, prompts: Sequence[Encoded], longest: Sequence[int]) -> tuple[Batch, float]:
        """Return a batch, and how far its logits may be from those of each prompt alone, as a share of the largest.

        Prompts that move each other's numbers are read apart.
        """
        if len(prompts) == 1:
            return self._alone(prompts[0]), 0.0
        batch, isolation = self.reader.together(prompts, longest, self.max_new_tokens, keep=True)
        if isolation.exact:
            return batch, LEAST_NOISE if known_noise(self.reader.lm) else 0.0  # a few rows may not have shown it all
        return self.reader.apart(prompts, self.max_new_tokens, keep=True), 0.0

    def pieces(self, prompt: Encoded) -> Iterator[Piece]:
        """Yield the answer to one prompt in pieces, each before the next token is computed; then how it ended."""
        text = IncrementalDetokenizer(self.codec, self.stop)
        for token in islice(_greedy_tokens(self._alone(prompt)), self.max_new_tokens):
            if self.codec.is_end(token):
                text.ended = True
                break
            if piece := text.add(token):
                yield piece
            if text.stopped:
                break
            stop_if_cancelled()
        if piece := text.finish():
            yield piece
        yield Ending(finish=text.finish_reason)

    def _alone(self, prompt: Encoded) -> Batch:
        return self.reader.alone(prompt, self.max_new_tokens)


def _greedy_tokens(batch: Batch) -> Iterator[int]:
    """Yield the greedy tokens of a batch of one row, without end."""
    logits = batch.open().logits
    while True:
        yield (token := int(logits.argmax(-1)[0]))
        logits = batch.append([token])


def _logprob(logits: torch.Tensor, token: int) -> float:
    """Return a token's log-probability, from the [V] logits of one row: other rows have no part in it."""
    return float(logits[token] - logits.logsumexp(-1))


class LocalSession(DecodingSession):
    """A decoding session on a local model; the last row is the no-retrieval prompt.

    Args:
        batch: the rows, not read yet.
        abstentions: the token sequences that spell an abstention.
        truncated: per group, whether its passages were cut.
        noise: a bound on how far a row's probabilities may move.
        lengths: per row, the tokens of its prompt.
    """

    def __init__(
        self,
        batch: Batch,
        abstentions: Sequence[Sequence[int]],
        truncated: tuple[bool, ...],
        noise: float,
        lengths: Sequence[int],
    ) -> None:
        self._batch, self._noise, self._lengths = batch, noise, tuple(lengths)
        self._steps = 0
        opened = batch.open(abstentions)
        self.opening = Opening(_numpy(opened.spelled[:-1]), self._distributions(opened.logits), truncated)

    def append(self, token: int) -> Distributions:
        """Append the token to every row."""
        stop_if_cancelled()
        return self._distributions(self._batch.append([token] * self._batch.rows))

    def _distributions(self, logits: torch.Tensor) -> Distributions:
        self._steps += 1
        spent = tuple(Usage(length, completion=self._steps) for length in self._lengths)
        rows = _numpy(logits.softmax(-1))
        return Distributions(rows[:-1], rows[-1], self._noise, spent=spent, calls=self._steps * len(spent))

    def fork(self) -> DecodingSession:
        """Return a copy with its own cache: later tokens run in the same shapes, so the numbers are the same."""
        twin = copy.copy(self)
        twin._batch = self._batch.fork()
        return twin

    def tree(self) -> DecodingTree | None:
        """Return a tree of many continuations per forward pass, where its float noise is known and the only one."""
        stem = None if self._noise else self._batch.stem()
        return None if stem is None else LocalTree(stem)


class LocalTree(DecodingTree):
    """Continuations of a session, a level of the certification tree in one forward pass; all rows at a time."""

    def __init__(self, stem: Stem) -> None:
        self._tree = TokenTree(stem)
        self._nodes: dict[tuple[int, ...], int] = {(): -1}

    def grow(self, prefixes: Sequence[tuple[int, ...]]) -> list[Distributions]:
        """Return the distributions after each of these continuations, in one forward pass."""
        first = self._tree.size
        parents = [self._nodes[prefix[:-1]] for prefix in prefixes]
        logits = self._tree.extend(parents, [prefix[-1] for prefix in prefixes])
        self._nodes.update((prefix, first + i) for i, prefix in enumerate(prefixes))
        rows = [_numpy(logits[:, i].softmax(-1)) for i in range(len(prefixes))]
        return [Distributions(of_one[:-1], of_one[-1]) for of_one in rows]


def _numpy(tensor: torch.Tensor) -> NDArray[np.floating]:
    array: NDArray[np.floating] = tensor.cpu().numpy()
    return array


@torch.inference_mode()
def reply_scores(prompt: SinglePrompt | PlainPrompt, texts: Sequence[Sequence[Tokens]], ends: Tokens) -> Scores | None:
    """Return the log-probability of each text as the whole reply to a prompt: the sum over its spellings.

    Args:
        prompt: the prompt, not read yet.
        texts: per text, the token sequences that spell it; one without any has the lowest score.
        ends: the tokens that may end a reply.

    Returns:
        Per text, a number from `LOWEST` to 0; None if one of them is NaN.
    """
    spelled = list(dict.fromkeys(tuple(tokens) for ways in texts for tokens in ways))
    stops = torch.tensor(list(ends))
    known: dict[tuple[int, ...], float] = {}
    for tokens, logits in zip(spelled, prompt.behind(spelled), strict=True):
        logprobs = logits.double().log_softmax(-1).cpu()
        said = sum(float(logprobs[at, token]) for at, token in enumerate(tokens))
        known[tokens] = said + float(logprobs[-1, stops].logsumexp(-1))
    found = [_sum([known[tuple(tokens)] for tokens in ways]) for ways in texts]
    return None if any(map(math.isnan, found)) else found


def _sum(logprobs: Sequence[float]) -> float:
    """Add probabilities that are given as logarithms."""
    if any(map(math.isnan, logprobs)):
        return math.nan
    most = max(logprobs, default=LOWEST)
    total = most if most <= LOWEST else most + math.log(math.fsum(math.exp(value - most) for value in logprobs))
    return min(0.0, max(LOWEST, total))
