"""A tokenizer without its model: tokens to text and back, for models that run elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.extras import missing


def load_tokenizer(name_or_path: str) -> tuple[Any, frozenset[int]]:
    """Load a fast tokenizer and the tokens that end its model's texts; remote code is never run."""
    try:
        from transformers import AutoTokenizer, GenerationConfig
    except ImportError as error:
        raise missing("this model needs a tokenizer", "remote") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot load the tokenizer {name_or_path!r}: {error}. Pass tokenizer= with the folder or name of the "
            "model that the server runs"
        ) from error
    with suppress(OSError, ValueError):  # many models have none
        return tokenizer, ends_in(GenerationConfig.from_pretrained(name_or_path))
    return tokenizer, frozenset()


def ends_in(config: Any) -> frozenset[int]:
    """Return the tokens that end a model's texts, by its configuration."""
    listed = getattr(config, "eos_token_id", None)
    return frozenset(listed if isinstance(listed, (list, tuple)) else [] if listed is None else [listed])


class TokenizerCodec:
    """Decodes the tokens of a fast transformers tokenizer; `ends` are tokens that end a text, besides its own."""

    def __init__(self, tokenizer: Any, ends: Iterable[int] = ()) -> None:
        self._tokenizer = tokenizer
        self.ends = frozenset(ends) | ends_in(tokenizer)
        self.size = len(tokenizer)  # a model may have room for more
        self._by_text: dict[str, int | None] = {}
        self._learning = threading.Lock()

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of generated tokens, special tokens left out."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def is_end(self, token: int) -> bool:
        """True if the token ends a text."""
        return token in self.ends

    def token_of(self, text: str) -> int | None:
        """Return the only token with this text; None where there are several, or none."""
        with self._learning:  # replies are read in several threads, and this takes a second for a hundred thousand
            for token in range(self.size) if not self._by_text else ():
                word = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
                self._by_text[word] = None if word in self._by_text else token
            return self._by_text.get(text)
