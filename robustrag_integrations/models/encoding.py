"""Prompts to tokens: one BOS, hostile text as plain text, passages cut to a budget that no passage controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.prompts import ABSTENTION, Prompt

_SLOT = "robustrag-prompt-goes-here"
SEAM = 8  # tokens by which text with a passage may exceed the sum of its parts, where token boundaries shift


@dataclass(frozen=True)
class Encoded:
    """Token ids of a prompt, and whether its passages were cut to fit."""

    ids: tuple[int, ...]
    truncated: bool = False


class PromptEncoder:
    """Encodes prompts for one tokenizer.

    With a chat template, the template is rendered once around a placeholder, so that it never sees a passage; its
    special tokens are parsed, while strings such as "</s>" inside a prompt stay plain text. Without one, the
    tokenizer's own leading special tokens (BOS) are put in front once.

    Raises:
        ValueError: the tokenizer cannot tell where its tokens come from, or its chat template rewrites the prompt.
    """

    def __init__(self, tokenizer: Any, *, chat: bool) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(
                f"{type(tokenizer).__name__} gives no character offsets; load a fast tokenizer "
                "(AutoTokenizer.from_pretrained does by default)"
            )
        self._tokenizer = tokenizer
        self._before, self._after = self._chat_frame() if chat else (self._leading_special(), ())

    def encode(self, prompt: Prompt, budget: int | None = None) -> Encoded:
        """Tokens of a prompt, never more than `frame_length` + `budget`: the end of a longer context is cut."""
        encoding = self._tokenizer(
            prompt.text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
        )
        ids: list[int] = list(encoding["input_ids"])
        allowed = None if budget is None else self._content_frame(prompt) + budget + SEAM
        cut = allowed is not None and len(ids) > allowed
        if allowed is not None and cut and prompt.context is not None:
            ids = self._without_the_end_of_the_context(prompt, ids, encoding["offset_mapping"], len(ids) - allowed)
        return Encoded((*self._before, *ids, *self._after), cut)

    def frame_length(self, prompt: Prompt) -> int:
        """How many tokens the prompt has apart from its context; the same for every group of a question."""
        return len(self._before) + self._content_frame(prompt) + len(self._after) + SEAM

    def abstentions(self) -> tuple[tuple[int, ...], ...]:
        """The token sequences that spell the abstention string after a prompt, with and without a leading space."""
        variants = (self._plain(text) for text in (" " + ABSTENTION, ABSTENTION))
        return tuple(dict.fromkeys(v for v in variants if v))

    def _without_the_end_of_the_context(
        self, prompt: Prompt, ids: list[int], offsets: Sequence[tuple[int, int]], excess: int
    ) -> list[int]:
        start, end = prompt.context or (0, 0)
        inside = [i for i, (a, b) in enumerate(offsets) if a >= start and b <= end and b > a]
        if not inside or inside[-1] + 1 - inside[0] < excess:  # token boundaries that no cut can satisfy: no context
            return list(self._plain(prompt.text[:start] + prompt.text[end:]))
        last = inside[-1] + 1
        return ids[: last - excess] + ids[last:]

    def _content_frame(self, prompt: Prompt) -> int:
        start, end = prompt.context or (0, 0)
        return len(self._plain(prompt.text[:start] + prompt.text[end:]))

    def _plain(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def _parsed(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer(text, add_special_tokens=False, split_special_tokens=False)["input_ids"])

    def _leading_special(self) -> tuple[int, ...]:
        ids: Sequence[int] = self._tokenizer("a")["input_ids"]
        plain = self._plain("a")
        for at in range(len(ids)):
            if tuple(ids[at : at + len(plain)]) == plain:
                return tuple(ids[:at])
        return ()

    def _chat_frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        messages = [{"role": "user", "content": _SLOT}]
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, slot, after = text.partition(_SLOT)
        if not slot or _SLOT in after:
            raise ValueError("the tokenizer's chat template rewrites the user's message; pass chat=False to go without")
        return self._parsed(before), self._parsed(after) if after else ()
