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
    """Serves `/v1/completions` for token-id prompts of one model, one row at a time, as many tokens as are asked for.

    Args:
        model: a causal language model.
        tokenizer: its tokenizer.
        cap: the largest number of log-probabilities that is not refused.
        by_id: whether requests may ask for tokens by number (vLLM) or get them by their text in any case (SGLang).
        meddle: changes a request's top log-probabilities, or the whole reply; None for neither. Of a request for
            several tokens it sees one request for each, with the prompt so far, and its `place` from 0 on.
        lists: how many lists a reply holds at most.
        text: prompts as token ids are refused, as by llama-cpp-python and mlx-lm.
        flag: lists are asked for and given as in chats, as by mlx-lm.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        cap: int = 100_000,
        by_id: bool = True,
        meddle: Meddle | None = None,
        text: bool = False,
        flag: bool = False,
        lists: int = 1000,
    ) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._cap, self._by_id, self._meddle = cap, by_id, meddle
        self._text, self._flag, self._lists = text, flag, lists
        self._known: dict[tuple[int, ...], torch.Tensor] = {}
        self._one_at_a_time = threading.Lock()
        super().__init__(self._answer, whole_requests=True)

    def _answer(self, request: dict[str, Any]) -> Reply:
        count, asked = request["logprobs"], request["prompt"]
        assert request["temperature"] == 0
        if isinstance(count, bool) != self._flag:
            return Reply(f"logprobs must {'' if self._flag else 'not '}be of type bool", status=400)
        if self._text != isinstance(asked, str):
            return Reply("text input must be of type `str`", status=404)
        if self._flag:
            count = request["top_logprobs"]
        prompt = tuple(self._tokenizer(asked)["input_ids"] if self._text else asked)
        if count > self._cap:
            said = f"Requested sample logprobs of {count}, which is greater than max allowed: {self._cap}"
            return Reply(said, status=400)
        by_id = self._flag or (self._by_id and request.get("return_tokens_as_token_ids", False))
        written: list[int] = []
        tops: list[dict[str, Any]] = []
        for _ in range(request["max_tokens"]):
            here = (*prompt, *written)
            top, best = self._top(here, count, by_id=by_id)
            if self._meddle is not None:
                so_far = self._tokenizer.decode(here) if self._text else list(here)
                changed = self._meddle({**request, "prompt": so_far, "place": len(written)}, top)
                if isinstance(changed, Reply):
                    if written:
                        break
                    return changed
                top = top if changed is None else changed
            tops.append(top)
            written.append(best)
            if best == self._tokenizer.eos_token_id:
                break
        tops = tops[: self._lists]
        if self._flag:
            return self._chat_style(tops, written, len(prompt))
        names = [f"token_id:{token}" if by_id else self._tokenizer.decode([token]) for token in written]
        listed = {
            "tokens": names,
            "token_logprobs": [top.get(name) for name, top in zip(names, tops, strict=False)],
            "text_offset": [0] * len(names),
            "top_logprobs": tops,
        }
        text = self._tokenizer.decode(written, skip_special_tokens=True)
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

    def _chat_style(self, tops: list[dict[str, float]], written: list[int], read: int) -> Reply:
        """As mlx-lm has it: entries in no order, and the first one named as the token that was written."""
        content = []
        for top in tops:
            entries = [{"id": int(n.partition(":")[2]), "token": "Ġ?", "logprob": value} for n, value in top.items()]
            content.append({**entries[-1], "top_logprobs": entries[::-1]})
        text = self._tokenizer.decode(written, skip_special_tokens=True)
        choice = {"index": 0, "text": text, "finish_reason": "length", "logprobs": {"content": content}}
        body = {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
        usage = {"prompt_tokens": read, "completion_tokens": len(written)}
        return Reply(body=json.dumps({**body, "usage": usage}).encode())

    def _after(self, prompt: tuple[int, ...]) -> torch.Tensor:
        with self._one_at_a_time, torch.inference_mode():
            if prompt not in self._known:
                logits = self._model(input_ids=torch.tensor([prompt])).logits[0, -1]
                self._known[prompt] = logits.float().log_softmax(-1)
            return self._known[prompt]
