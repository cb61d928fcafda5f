"""What batches are read for: greedy texts and decoding sessions."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import (
    DecodingSession,
    Distributions,
    Opening,
    Response,
    TokenCodec,
)
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.batches import Batch, PromptRows
from robustrag_integrations.models.local.cancellation import stop_if_cancelled
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.language_model import CausalLM, why_coupled
from robustrag_integrations.models.local.reading import PromptReader
from robustrag_integrations.models.reply import Ending, Piece

_LEAST_LEAD = 2.0**-14  # of a token, as a share of the largest logit, below which other shapes could turn it


@dataclass(frozen=True)
class GreedyWriter:
    """Writes answers of at most `max_new_tokens` with the most probable token at each step, up to a `stop` string."""

    reader: PromptReader
    codec: TokenCodec
    stop: tuple[str, ...]
    max_new_tokens: int

    def together(self, prompts: Sequence[Encoded], longest: Sequence[int]) -> list[Response]:
        """Answer all prompts as one batch; one with a token whose lead other shapes could turn is asked again alone."""
        if len(prompts) == 1:
            return [self.alone(prompts[0])]
        batch, _ = self.reader.together(prompts, longest, self.max_new_tokens)
        apart = not isinstance(batch, PromptRows) or not _known_noise(self.reader.lm)
        return [  # a few rows may not have shown the probe all noise
            response if apart or lead >= _LEAST_LEAD else self.alone(prompt)
            for prompt, (response, lead) in zip(prompts, self.write(batch), strict=True)
        ]

    def alone(self, prompt: Encoded) -> Response:
        """Answer one prompt."""
        [(response, _)] = self.write(self.reader.alone(prompt, self.max_new_tokens))
        return response

    def write(self, batch: Batch) -> list[tuple[Response, float]]:
        """Write the answers of a batch until the last is complete; a complete one stays in the batch.

        Returns:
            Per prompt, its text, finish reason and log-probabilities (those of its tokens, of the one that ended it,
            too; None if one of them is NaN), and the smallest lead that one of its tokens had, as `_leads` gives it.
        """
        texts = [IncrementalDetokenizer(self.codec, self.stop) for _ in range(batch.rows)]
        done, least = [False] * batch.rows, [math.inf] * batch.rows
        logprobs: list[list[float]] = [[] for _ in texts]
        for tokens, logits in self._steps(batch):
            for row, (token, lead) in enumerate(zip(tokens, _leads(logits), strict=True)):
                if not done[row]:
                    own = logits[row]  # other rows have no part in its log-probability
                    logprobs[row].append(float(own[token] - own.logsumexp(-1)))
                    least[row] = min(least[row], lead)
                    done[row] = texts[row].take(token)
            if all(done):
                break
        written = []
        for text, found, lead in zip(texts, logprobs, least, strict=True):
            text.finish()
            known = tuple(found) if all(value <= 0 for value in found) else None
            written.append((Response(text.shown, finish=text.finish_reason, logprobs=known), lead))
        return written

    def pieces(self, prompt: Encoded) -> Iterator[Piece]:
        """Yield the answer to one prompt in pieces, each before the next token is computed; then how it ended."""
        text = IncrementalDetokenizer(self.codec, self.stop)
        for [token], _ in self._steps(self.reader.alone(prompt, self.max_new_tokens)):
            shown = len(text.shown)
            complete = text.take(token)
            if piece := text.shown[shown:]:
                yield piece
            if complete:
                break
        if piece := text.finish():
            yield piece
        yield Ending(finish=text.finish_reason)

    def _steps(self, batch: Batch) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Yield the most probable token of each row, with the logits [rows, V] that it comes from, step by step."""
        logits = batch.open().logits
        for left in range(self.max_new_tokens - 1, -1, -1):
            tokens: list[int] = logits.argmax(-1).tolist()
            yield tokens, logits
            if left:
                stop_if_cancelled()
                logits = batch.append(tokens)


def _known_noise(lm: CausalLM) -> bool:
    """Tell whether a model's float noise is of the size that the margins assume: all in full float32 precision.

    Where noise can send a token to another expert, or tokens share a scale, it grows, and not where it was measured.
    """
    return (
        torch.get_float32_matmul_precision() == "highest"
        and all(weight.dtype == torch.float32 for weight in lm.model.parameters())
        and why_coupled(lm) is None
    )


def _leads(logits: torch.Tensor) -> list[float]:
    """Return per row of [rows, V] the lead of the best logit, a share of the largest (1 at least); 0 if not finite."""
    best, largest = logits.topk(2, dim=-1).values, logits.abs().amax(-1)
    lead = (best[:, 0] - best[:, 1]) / largest.clamp(min=1)
    found: list[float] = lead.masked_fill(~largest.isfinite(), 0.0).tolist()
    return found


class LocalSession(DecodingSession):
    """A decoding session over a batch of these prompts, not read yet; the last row is the no-retrieval prompt."""

    def __init__(
        self, batch: Batch, prompts: Sequence[Encoded], abstentions: Sequence[Sequence[int]], noise: float
    ) -> None:
        self._batch, self._noise, self._prompts = batch, noise, prompts
        self._steps = 0
        opened = batch.open(abstentions)
        truncated = tuple(prompt.truncated for prompt in prompts[:-1])
        self.opening = Opening(opened.spelled[:-1].cpu().numpy(), self._distributions(opened.logits), truncated)

    def append(self, token: int) -> Distributions:
        """Append the token to every row."""
        stop_if_cancelled()
        return self._distributions(self._batch.append([token] * self._batch.rows))

    def _distributions(self, logits: torch.Tensor) -> Distributions:
        self._steps += 1
        spent = tuple(Usage(len(prompt.ids), completion=self._steps) for prompt in self._prompts)
        rows = logits.softmax(-1).cpu().numpy()
        return Distributions(rows[:-1], rows[-1], self._noise, spent=spent, calls=self._steps * len(spent))

    def fork(self) -> DecodingSession:
        """Return a copy with its own cache: later tokens run in the same shapes, so the numbers are the same."""
        twin = copy.copy(self)
        twin._batch = self._batch.fork()
        return twin
