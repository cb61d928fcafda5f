"""How servers want to be asked for a token and its alternatives: their completions APIs differ in two fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.token_lists import is_chat_style
from robustrag_integrations.models.tokenizer_codec import TokenizerCodec
from robustrag_integrations.replies.blocks import usage_of


@dataclass(frozen=True)
class Dialect:
    """The fields of a request that servers disagree about.

    Attributes:
        text: prompts go out as text, not as token ids.
        flag: lists are asked for as in chats, `logprobs: true` and `top_logprobs: K`; otherwise as `logprobs: K`.
    """

    text: bool
    flag: bool

    def prompt(self, tokens: Sequence[int], codec: TokenizerCodec) -> list[int] | str:
        """The prompt as the server takes it.

        Raises:
            ModelError: the server takes texts, and no text has these tokens. Text that spells a special token in a
                passage is such a case: the server would take it for that token.
        """
        if not self.text:
            return list(tokens)
        text = codec.text_for(tokens)
        if text is None:
            raise ModelError(
                "the server takes prompts as text only, and this prompt's tokens cannot be written as text: the "
                "tokenizer would read it as other tokens"
            )
        return text

    def lists(self, count: int) -> dict[str, Any]:
        """The fields that ask for the `count` most probable tokens."""
        return {"logprobs": True, "top_logprobs": count} if self.flag else {"logprobs": count}

    def check(self, reply: Mapping[str, Any], tokens: int) -> None:
        """Raise ModelError if the server understood the request otherwise.

        Args:
            reply: the server's reply.
            tokens: how many the prompt has.
        """
        if self.flag and not is_chat_style(reply):
            raise ModelError("the server does not take `logprobs: true` with `top_logprobs`")
        read = usage_of(reply.get("usage")).prompt
        if self.text and read is not None and read != tokens:
            raise ModelError(
                f"the server read the prompt as {read} tokens in place of {tokens}: it has another tokenizer, adds "
                "tokens of its own, or reads special tokens in passages"
            )


DIALECTS = (  # vLLM, SGLang, transformers' own; llama.cpp; llama-cpp-python; mlx-lm
    Dialect(text=False, flag=False),
    Dialect(text=False, flag=True),
    Dialect(text=True, flag=False),
    Dialect(text=True, flag=True),
)
