"""What a server wrote after a prompt, several tokens at once, and the list that stands before each of them.

A list is of use only where it is known which tokens it follows. Each row decides about its own reply alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from robustrag_integrations.replies.blocks import usage_of
from robustrag_integrations.usage import Usage


@dataclass(frozen=True)
class Continuation:
    """What follows one prompt.

    Attributes:
        lists: the most probable tokens after the prompt, and after each of the first tokens; at least one list.
        tokens: what the server wrote, as far as it is known for sure: one less than lists, or as many.
        asked: tokens of each request that it took, one after another.
    """

    lists: tuple[TokenList, ...]
    tokens: tuple[int, ...] = ()
    asked: tuple[Usage, ...] = ()

    def after(self, tokens: Sequence[int]) -> TokenList | None:
        """The list after these tokens; None where the server wrote others, or said no more."""
        known = len(tokens) < len(self.lists) and tuple(tokens) == self.tokens[: len(tokens)]
        return self.lists[len(tokens)] if known else None


def continuation(
    reply: Mapping[str, Any], wanted: int, length: int, vocabulary: Vocabulary, *, greedy: bool
) -> Continuation:
    """Read a completion of up to `length` tokens. What stands behind these is not read.

    Args:
        reply: a text completion.
        wanted: how many tokens each list was asked to hold.
        length: how many tokens were asked for.
        vocabulary: for servers that name tokens by their text.
        greedy: whether the server was asked for the most probable tokens, and takes that parameter. Where replies do
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


def _led(reply: Mapping[str, Any], found: TokenList, place: int, vocabulary: Vocabulary) -> int | None:
    """The token that leads its list."""
    token = leader(found.listed)
    return token if token is not None and found.listed[token] > found.unlisted else None


def _named(reply: Mapping[str, Any], found: TokenList, place: int, vocabulary: Vocabulary) -> int | None:
    """The token that the reply names, if there is only one of that name, and it is on its own list."""
    names = choice_of(reply)["logprobs"].get("tokens")
    if not isinstance(names, list) or place >= len(names) or not isinstance(names[place], str):
        return None
    try:
        token, _ = token_named(names[place], vocabulary)
    except ModelError:
        return None
    return token if token in found.listed else None


def _check_spelling(text: Any, tokens: Sequence[int], vocabulary: Vocabulary) -> None:
    """Raise ModelError if the tokens are not those of the text that was written."""
    spelled = vocabulary.decode(tokens).rstrip("\ufffd")  # half a character
    if not isinstance(text, str) or not (text.startswith(spelled) or (" " + text).startswith(spelled)):
        raise ModelError("the server's lists are not those of the text that it wrote")
