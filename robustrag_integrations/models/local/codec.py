"""A local model's tokens as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ModelCodec:
    """A tokenizer's decoder, and which tokens end a text."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self._tokenizer = tokenizer
        ends = {tokenizer.eos_token_id}
        for config in (model.config, getattr(model, "generation_config", None)):
            listed = getattr(config, "eos_token_id", None)
            ends.update(listed if isinstance(listed, (list, tuple)) else [listed])
        self._ends = frozenset(e for e in ends if e is not None)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def is_end(self, token: int) -> bool:
        """Whether the token ends a text."""
        return token in self._ends
