"""Final prompts of one question, each answered as if it had been asked alone.

Keyword certification asks the same final question with many sets of keywords. The first is asked alone. The others are
read and answered many at a time, as rows of one batch behind what they all begin with, and the first among them once
more: its row shows the float noise that this brings. A prompt with a token whose lead is not far beyond that is asked
alone, and so are all prompts where more than noise is measured. The responses are those of inference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from robustrag_integrations.models.base import FinalAnswers, Response, noise_bound
from robustrag_integrations.models.local.cancellation import in_cancellable_thread, stop_if_cancelled
from robustrag_integrations.models.local.decoding import Watch
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.token_trees import logit_noise
from robustrag_integrations.text.prompts import Prompt

_PROMPTS = 32  # in one batch
_TOKENS = 8192  # of its prompts together


class BatchedFinals(FinalAnswers):
    """Answers final prompts of a `LocalModel` in batches."""

    def __init__(self, model: Any) -> None:
        self._local = model
        self._first: tuple[Encoded, list[torch.Tensor]] | None = None  # and the logits of its steps
        self._trusted = True
        self._measured = 0.0
        self._counts = Counter[str]()

    @property
    def profile(self) -> dict[str, Any]:
        """The numbers of prompts answered in batches and alone, and the logits' noise as a share of the largest one."""
        if not self._counts["packed"]:
            return {}
        return {
            "finals_packed": self._counts["packed"],
            "finals_alone": self._counts["alone"],
            "noise_measured": self._measured,
            "noise_bound": noise_bound(self._measured),
        }

    def answer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """Return one response per prompt, as if each had been asked alone."""
        found: list[Response | None] = []
        if prompts and self._first is None:
            steps: list[torch.Tensor] = []
            found.append(self._alone(prompts[0], steps.append))
            self._first = self._local.encode_final(prompts[0]), steps
        encoded = [self._local.encode_final(prompt) for prompt in prompts]
        size = max(1, min(_PROMPTS, _TOKENS // max((len(e.ids) for e in encoded), default=1)))
        while len(found) < len(prompts):
            stop_if_cancelled()
            found += self._together(encoded[len(found) :][:size])
        return [self._alone(p) if response is None else response for p, response in zip(prompts, found, strict=True)]

    async def aanswer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """`answer` in a thread; cancelling it stops it at the next prompt or token."""
        return await in_cancellable_thread(self.answer, prompts)

    def _alone(self, prompt: Prompt, watch: Watch | None = None) -> Response:
        self._counts["alone"] += 1
        response: Response = self._local.ask_alone(prompt, watch)
        return response

    def _together(self, prompts: Sequence[Encoded]) -> list[Response | None]:
        """Answer prompts in one batch; None where a token is in doubt."""
        assert self._first is not None  # noqa: S101 - asked before all others
        first, steps = self._first
        if not self._trusted or len(prompts) == 1:
            return [None] * len(prompts)
        expected = iter(steps)

        def measure(logits: torch.Tensor) -> None:
            if (alone := next(expected, None)) is not None:
                self._measured = max(self._measured, logit_noise(logits[0], alone[0]))

        writer = self._local.writer
        batch = writer.reader.behind_common_prefix([first, *prompts], writer.max_new_tokens)
        written = writer.write(batch, measure)[1:]
        noise = noise_bound(self._measured)
        self._trusted = noise is not None
        complete = self._local.complete(prompts, [response for response, _ in written])
        sure = [noise is not None and lead >= 2 * noise for _, lead in written]
        self._counts["packed"] += sum(sure)
        return [response if clear else None for response, clear in zip(complete, sure, strict=True)]
