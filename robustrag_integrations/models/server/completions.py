"""Completions of one or several tokens: requests in each server's dialect, and the list before each token.

Servers' completions APIs differ in two fields. A list is of use only where the tokens before it are known. Each row
decides about its own reply alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.replies import choice_of
from robustrag_integrations.models.server.token_lists import (
    TokenList,
    Vocabulary,
    is_chat_style,
    leader,
    list_at,
    token_list,
    token_named,
)
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
        """Return the prompt in the form that the server takes.

        Raises:
            ModelError: the server takes text, and no text has these tokens. A passage that spells a special token is
                one case: the server would take it for that token.
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
        """Return the fields that ask for the `count` most probable tokens."""
        return {"logprobs": True, "top_logprobs": count} if self.flag else {"logprobs": count}

    def check(self, reply: Mapping[str, Any], tokens: int) -> None:
        """Raise ModelError if the server misunderstood the request.

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


@dataclass(frozen=True)
class Continuation:
    """The continuation of one prompt.

    Attributes:
        lists: the most probable tokens after the prompt, and after each of the first tokens; at least one list.
        tokens: the tokens that the server wrote, as far as they are certain: one fewer than lists, or as many.
        asked: the usage of each request that it took, one after another.
    """

    lists: tuple[TokenList, ...]
    tokens: tuple[int, ...] = ()
    asked: tuple[Usage, ...] = ()

    def after(self, tokens: Sequence[int]) -> TokenList | None:
        """Return the list after these tokens; None where the server wrote others, or no more."""
        known = len(tokens) < len(self.lists) and tuple(tokens) == self.tokens[: len(tokens)]
        return self.lists[len(tokens)] if known else None


def continuation(
    reply: Mapping[str, Any], wanted: int, length: int, vocabulary: Vocabulary, *, greedy: bool
) -> Continuation:
    """Read a completion of up to `length` tokens; later ones are not read.

    Args:
        reply: a text completion.
        wanted: number of tokens that each list was asked to hold.
        length: number of tokens that were asked for.
        vocabulary: for servers that name tokens by their text.
        greedy: True if the server was asked for the most probable tokens, and takes that parameter. Where replies do
            not name their tokens reliably (those in the form of chats), they are known then: they lead their lists by
            more than rounding, and spell the text. Otherwise the first list alone is read.

    Raises:
        ModelError: as for `token_list`, of the first list; where a later one is missing or broken, it ends there.
    """
    usage = usage_of(reply.get("usage"))
    if length == 1:
        return Continuation((token_list(reply, wanted, vocabulary),), (), (usage,))
    lists = [list_at(reply, 0, wanted, vocabulary)]
    written = _led if is_chat_style(reply) else _named
    tokens: list[int] = []
    while (token := written(reply, lists[-1], len(tokens), vocabulary)) is not None:
        tokens.append(token)
        if len(tokens) == length:
            break
        try:
            lists.append(list_at(reply, len(tokens), wanted, vocabulary))
        except ModelError:  # the end of the text, or a server that gives fewer lists
            break
    if is_chat_style(reply):
        _check_spelling(choice_of(reply).get("text"), tokens, vocabulary)
        if not greedy:
            return Continuation(tuple(lists[:1]), (), (usage,))
    return Continuation(tuple(lists), tuple(tokens), (usage,))


def _led(reply: Mapping[str, Any], listing: TokenList, place: int, vocabulary: Vocabulary) -> int | None:
    """Return the token that leads its list."""
    token = leader(listing.listed)
    return token if token is not None and listing.listed[token] > listing.unlisted else None


def _named(reply: Mapping[str, Any], listing: TokenList, place: int, vocabulary: Vocabulary) -> int | None:
    """Return the token that the reply names, if the name is unique and the token is on its own list."""
    names = choice_of(reply)["logprobs"].get("tokens")
    if not isinstance(names, list) or place >= len(names) or not isinstance(names[place], str):
        return None
    try:
        token, _ = token_named(names[place], vocabulary)
    except ModelError:
        return None
    return token if token in listing.listed else None


def _check_spelling(text: Any, tokens: Sequence[int], vocabulary: Vocabulary) -> None:
    """Raise ModelError if the tokens are not those of the text that was written."""
    spelled = vocabulary.decode(tokens).rstrip("\ufffd")  # half a character
    if not isinstance(text, str) or not (text.startswith(spelled) or (" " + text).startswith(spelled)):
        raise ModelError("the server's lists are not those of the text that it wrote")
