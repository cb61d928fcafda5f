"""A completions server on loopback that gives a transformers model's real log-probabilities, as several servers do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import torch

from tests.helpers.openai_server import LoopbackServer, Reply

Meddle = Callable[[dict[str, Any], dict[str, float]], "dict[str, Any] | Reply | None"]


class LogprobServer(LoopbackServer):
    """Serves `/v1/completions` for token-id prompts of one model, one row and one token at a time.

    Args:
        model: a causal language model.
        tokenizer: its tokenizer.
        cap: the largest number of log-probabilities that is not refused.
        by_id: whether requests may ask for tokens by number (vLLM) or get them by their text in any case (SGLang).
        meddle: changes a request's top log-probabilities, or the whole reply; None for neither.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, cap: int = 100_000, by_id: bool = True, meddle: Meddle | None = None
    ) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._cap, self._by_id, self._meddle = cap, by_id, meddle
        self._known: dict[tuple[int, ...], torch.Tensor] = {}
        self._one_at_a_time = threading.Lock()
        super().__init__(self._answer, whole_requests=True)

    def _answer(self, request: dict[str, Any]) -> Reply:
        count, prompt = request["logprobs"], tuple(request["prompt"])
        assert request["temperature"] == 0
        assert request["max_tokens"] == 1
        if count > self._cap:
            said = f"Requested sample logprobs of {count}, which is greater than max allowed: {self._cap}"
            return Reply(said, status=400)
        by_id = self._by_id and request.get("return_tokens_as_token_ids", False)
        top, best = self._top(prompt, count, by_id=by_id)
        changed = None if self._meddle is None else self._meddle(request, top)
        if isinstance(changed, Reply):
            return changed
        name = f"token_id:{best}" if by_id else self._tokenizer.decode([best])
        tops = [top if changed is None else changed]
        listed = {"tokens": [name], "token_logprobs": [tops[0].get(name)], "text_offset": [0], "top_logprobs": tops}
        text = self._tokenizer.decode([best], skip_special_tokens=True)
        choice = {"index": 0, "text": text, "finish_reason": "length", "logprobs": listed}
        body = {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
        return Reply(body=json.dumps(body).encode())

    def _top(self, prompt: tuple[int, ...], count: int, *, by_id: bool) -> tuple[dict[str, Any], int]:
        """What a prompt's list holds, and the most probable token."""
        logprobs = self._after(prompt)
        best = logprobs.topk(min(count, len(logprobs)))
        top: dict[str, Any] = {}
        for token, value in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            name = f"token_id:{token}" if by_id else self._tokenizer.decode([token])
            top.setdefault(name, max(value, -9999.0))
        return top, int(best.indices[0].item())

    def _after(self, prompt: tuple[int, ...]) -> torch.Tensor:
        with self._one_at_a_time, torch.inference_mode():
            if prompt not in self._known:
                logits = self._model(input_ids=torch.tensor([prompt])).logits[0, -1]
                self._known[prompt] = logits.float().log_softmax(-1)
            return self._known[prompt]
