"""Greedy decoding: many prompts in one batch, or one prompt token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch

from robustrag_integrations.models.base import LEAST_NOISE, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.batch import Batch
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.reading import PromptReader
from robustrag_integrations.models.local.token_tree import clear_leads, known_noise
from robustrag_integrations.replies.reply import Ending, FinishReason, Piece

Watch = Callable[[torch.Tensor], None]  # sees the [rows, V] logits of every step


class Written(NamedTuple):
    """An answer.

    Attributes:
        text: its text.
        finish: its finish reason.
        logprobs: the log-probabilities of its tokens, of the one that ended it, too; None if one of them is NaN.
    """

    text: str
    finish: FinishReason
    logprobs: tuple[float, ...] | None


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

    def together(self, prompts: Sequence[Encoded], longest: Sequence[int], watch: Watch | None = None) -> list[Written]:
        """Answer all prompts as one batch, until the last answer is complete; a complete one stays in the batch.

        Args:
            prompts: the prompts to answer.
            longest: per prompt, the most tokens that it could have had, whatever its passage.
            watch: sees the logits of every step.

        Returns:
            Per prompt, its answer.
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
            Written(text.shown, text.finish_reason, tuple(found) if all(value <= 0 for value in found) else None)
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
