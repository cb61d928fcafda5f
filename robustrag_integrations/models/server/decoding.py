"""Decoding aggregation on a server: next-token probabilities from the completions API, one token at a time.

Every row of a session (a group's prompt, or the question alone) is a request of its own for one more token with its
top-K log-probabilities. Prompts go out as token ids, so that all rows are extended by the very same token; to servers
that take no ids, as texts that the tokenizer reads as just those. With prefix caching each prompt is read once.

A list of K tokens leaves the others open: each has at most the probability of the last one listed, and at most what
all listed ones leave over. Rows state the lower bound (0 for what is not listed) and how much more it may be; the plan
widens every comparison by the sum of that, and has the session ask for longer lists where it could change a token.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustrag_integrations.checks import check_at_least
from robustrag_integrations.errors import ModelError, QuorumError
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Distributions, Opening, Response
from robustrag_integrations.models.capabilities import without
from robustrag_integrations.models.local.encoding import PromptEncoder
from robustrag_integrations.models.server.connection import ServerError
from robustrag_integrations.models.server.dialects import DIALECTS, Dialect
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.models.server.replies import parsed
from robustrag_integrations.models.server.sizes import largest_reply
from robustrag_integrations.models.server.token_lists import TokenList, token_list
from robustrag_integrations.models.tokenizer_codec import TokenizerCodec, load_tokenizer
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.redaction import redacted
from robustrag_integrations.replies.reply import Piece
from robustrag_integrations.usage import Usage, together

_LONGER = 8  # times as many tokens are asked for where a list leaves a choice open
_NEGLIGIBLE = 1e-6  # a beginning of "I don't know" as improbable as this is not followed any further
_BY_NUMBER = {"return_tokens_as_token_ids": True}  # vLLM names tokens by number; other servers ignore it
_REFUSED = (400, 404, 422)
_PROBE = Prompt("Which river is the longest?")  # what dialects are tried with; it holds no passage


class _Refused(ModelError):
    """The server will not do what was asked of it, at whatever time."""


class RemoteDecodingModel(OpenAIModel, DecodingModel):
    """A model on an OpenAI-compatible server that gives token log-probabilities, such as vLLM or SGLang.

    It does what a `LocalModel` does: text for all defences, and next-token probabilities for decoding aggregation. The
    server must run the completions API, and have prefix caching on for speed. How it wants to be asked (prompts as
    token ids or as text, lists as in completions or as in chats) is found out once, where it refuses the usual way.

    Args:
        model: the model's name on the server.
        base_url, api_key: as for `OpenAIModel`.
        tokenizer: a fast transformers tokenizer, or the folder or name to load it from; None: `model` is that name. It
            must be the one that the server uses.
        chat: whether to put prompts into the tokenizer's chat template; None: if it has one. Reasoning is turned off
            where the template has a switch for it (`enable_thinking` and the like).
        template_options: variables of the chat template; these come first.
        top_logprobs: K, how many tokens each request asks for; vLLM allows 20 unless it was started with more.
        max_top_logprobs: how many are asked for at most where K leave a choice open; None: until the server refuses.
        max_context_tokens: how many tokens of passages each group may have; longer ones are cut, with a warning.
        settings: further arguments of `OpenAIModel`: `seed`, `max_tokens`, `options`, `timeout`, `attempts`,
            `max_concurrency` (at least the number of groups and one more lets all rows run at once), `name`.

    Raises:
        ModelError: the tokenizer cannot be loaded, or there is no API key.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        tokenizer: Any = None,
        chat: bool | None = None,
        template_options: Mapping[str, Any] | None = None,
        top_logprobs: int = 20,
        max_top_logprobs: int | None = None,
        max_context_tokens: int = 1024,
        **settings: Any,
    ) -> None:
        check_at_least(1, top_logprobs=top_logprobs, max_context_tokens=max_context_tokens)
        if max_top_logprobs is not None and max_top_logprobs < top_logprobs:
            raise ValueError(f"max_top_logprobs={max_top_logprobs!r} must be at least top_logprobs={top_logprobs}")
        if unknown := sorted(settings.keys() & {"api", "system", "temperature"}):
            raise ValueError(f"{', '.join(unknown)}: not for decoding, which reads probabilities off completions")
        ends: frozenset[int] = frozenset()
        if tokenizer is None or isinstance(tokenizer, str):
            tokenizer, ends = load_tokenizer(tokenizer or model)
        given = {"max_concurrency": 32, **settings}
        super().__init__(model, base_url, api_key, api="completions", **given)
        chats = bool(getattr(tokenizer, "chat_template", None)) if chat is None else chat
        if chats and "stop" not in (given.get("options") or {}):
            del self._fields["stop"]  # a chat ends by itself
        self._encoder = PromptEncoder(tokenizer, chat=chats, template_options=template_options)
        self._abstentions = self._encoder.abstentions()
        self._codec = TokenizerCodec(tokenizer, ends)
        self._top_logprobs = min(top_logprobs, self._codec.size)
        self._most_logprobs = min(max_top_logprobs or self._codec.size, self._codec.size)
        self._max_context_tokens = max_context_tokens
        self._dialect = DIALECTS[0]
        self._one_token = {
            **{name: value for name, value in self._fields.items() if name != "stop"},
            "max_tokens": 1,
            "extra_body": {**_BY_NUMBER, **self._fields.get("extra_body", {})},
        }

    @property
    def codec(self) -> TokenizerCodec:
        """Its tokens as text."""
        return self._codec

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the server, and reasoning that cannot be turned off."""
        return (*super().warnings, *(self._encoder.frame.warnings if self._encoder.frame else ()))

    @property
    def numerics(self) -> dict[str, str]:
        """Where the probabilities come from."""
        return {"server": self._connection.address, "top_logprobs": str(self._top_logprobs)}

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        """Ask for the first token of every prompt.

        Raises:
            ModelError: the question alone cannot be asked, or the chat template begins replies with reasoning; the
                message says which, or what the server lacks.
            QuorumError: no group can be asked.
        """
        self._encoder.refuse_reasoning()
        encoded = [self._encoder.encode(p, self._max_context_tokens) for p in (*prompts, no_retrieval)]
        truncated = tuple(e.truncated for e in encoded[:-1])
        return RemoteSession(self, [e.ids for e in encoded], truncated)

    def _request(self, prompt: str, **more: Any) -> dict[str, Any]:
        ids = self._encoder.encode(Prompt(prompt)).ids
        return {"prompt": self._dialect.prompt(ids, self._codec), **self._fields, **more}

    # --- what sessions ask for

    def next_tokens(self, prompts: Mapping[int, Sequence[int]], count: int) -> dict[int, TokenList | ModelError]:
        """The `count` most probable next tokens of each prompt, or why there are none."""
        return self._connection.loop.run(self._each(prompts, count))

    def abstentions(
        self, prompts: Mapping[int, Sequence[int]], first: Mapping[int, TokenList]
    ) -> dict[int, Abstention | ModelError]:
        """The probability of the whole abstention string after each prompt, at most; `first`: of its next token."""
        return self._connection.loop.run(self._all_abstentions(prompts, first))

    def longer(self, count: int) -> int | None:
        """How many tokens to ask for after `count` were too few; None if there are no more to be had."""
        more = min(count * _LONGER, self._most_logprobs)
        return more if more > count else None

    def no_more_than(self, count: int) -> None:
        """The server refuses longer lists than this."""
        self._most_logprobs = count

    @property
    def top_logprobs(self) -> int:
        """How many tokens each request asks for."""
        return self._top_logprobs

    async def _each(self, prompts: Mapping[int, Sequence[int]], count: int) -> dict[int, TokenList | ModelError]:
        lists = await asyncio.gather(*(self._tokens_after(ids, count) for ids in prompts.values()))
        return dict(zip(prompts, lists, strict=True))

    async def _tokens_after(self, ids: Sequence[int], count: int) -> TokenList | ModelError:
        async with self._async_slots():
            return await self._tokens_in(self._dialect, ids, count)

    async def _tokens_in(self, dialect: Dialect, ids: Sequence[int], count: int) -> TokenList | ModelError:
        try:
            request = {
                "prompt": dialect.prompt(ids, self._codec),
                **self._one_token,
                "extra_body": {**dialect.lists(count), **self._one_token["extra_body"]},
            }
            read = functools.partial(self._read_tokens, dialect, len(ids), count)  # may have to learn all tokens' texts
            largest = largest_reply(request)
            return await self._capabilities.acall(
                lambda refused: self._connection.reply(without(request, refused), largest, read, at_once=0), self._probe
            )
        except ServerError as error:
            failed = _explained(self._shown(error), error.status, count)
        except Exception as error:
            failed = self._shown(error)
        return failed

    def _read_tokens(self, dialect: Dialect, tokens: int, count: int, body: bytes) -> TokenList:
        reply = parsed(body)
        dialect.check(reply, tokens)
        self._fingerprints.note(reply)
        return token_list(reply, count, self._codec)

    def learn_dialect(self) -> list[str]:
        """Find out how the server wants to be asked; what it said against every way, if there is none."""
        return self._connection.loop.run(self._learn())

    async def _learn(self) -> list[str]:
        """The same; callers may hold a slot, so none is waited for."""
        ids = self._encoder.encode(_PROBE).ids
        said: dict[str, None] = {}
        for dialect in DIALECTS:
            found = await self._tokens_in(dialect, ids, self._top_logprobs)
            if isinstance(found, TokenList):
                self._dialect = dialect
                return []
            said[str(found)] = None
        return list(said)

    async def _aask(self, prompt: str) -> Response:
        try:
            response = await super()._aask(prompt)
        except ServerError as error:
            if not await self._learns_from(error):
                raise
            response = await super()._aask(prompt)
        return replace(response, text=self._encoder.opened + (response.text or ""))

    async def _apieces(self, prompt: str) -> AsyncIterator[Piece]:
        if self._encoder.opened:
            yield self._encoder.opened
        try:
            async for piece in super()._apieces(prompt):
                yield piece
            return
        except ServerError as error:  # of the request itself: nothing was streamed yet
            if not await self._learns_from(error):
                raise
        async for piece in super()._apieces(prompt):
            yield piece

    async def _learns_from(self, error: ServerError) -> bool:
        """Whether the server took offence at the dialect, and another one is known now."""
        if self._dialect is not DIALECTS[0] or not _is_refusal(error.status, str(error)):
            return False
        await self._learn()
        return self._dialect is not DIALECTS[0]

    def _shown(self, error: Exception) -> ModelError:
        """The failure in words, without a key that the server sent back."""
        words = redacted(str(error), self._secrets())
        return ModelError(words if isinstance(error, ModelError) else f"{type(error).__name__}: {words}")

    async def _all_abstentions(
        self, prompts: Mapping[int, Sequence[int]], first: Mapping[int, TokenList]
    ) -> dict[int, Abstention | ModelError]:
        found = await asyncio.gather(*(self._abstention(ids, first[row]) for row, ids in prompts.items()))
        return dict(zip(prompts, found, strict=True))

    async def _abstention(self, ids: Sequence[int], first: TokenList) -> Abstention | ModelError:
        spelled, asked = 0.0, []
        for tokens in self._abstentions:
            probability = first.most(tokens[0])
            for known in range(1, len(tokens)):
                if probability < _NEGLIGIBLE:
                    break
                found = await self._tokens_after((*ids, *tokens[:known]), self._top_logprobs)
                if isinstance(found, ModelError):
                    return found
                asked.append(found.usage)
                probability *= found.most(tokens[known])
            spelled += probability
        return Abstention(spelled, tuple(asked))


@dataclass(frozen=True)
class Abstention:
    """What a row's abstention has for a probability, at most, and the tokens of the requests that this took."""

    probability: float
    asked: tuple[Usage, ...]


class RemoteSession(DecodingSession):
    """A decoding session on a server: nothing but the tokens so far; the last row is the question alone.

    A row whose request fails counts as a group that says nothing from then on.
    """

    def __init__(self, model: RemoteDecodingModel, rows: Sequence[Sequence[int]], truncated: tuple[bool, ...]) -> None:
        self._model = model
        self._rows = dict(enumerate(tuple(row) for row in rows))
        self._question = len(rows) - 1
        self._prefix: tuple[int, ...] = ()
        self._failed: dict[int, str] = {}
        self._lists: dict[int, TokenList] = {}
        self._asked: dict[int, tuple[Usage, ...]] = {}
        self._count = model.top_logprobs
        self._open()
        abstention = self._abstentions()
        if self._question and len(self._failed) == self._question:
            raise QuorumError(0, self._question, 1, self._failed)
        self.opening = Opening(abstention, self._distributions(), truncated)

    def append(self, token: int) -> Distributions:
        """Ask for the token after this one in every row."""
        self._prefix = (*self._prefix, token)
        self._count = self._model.top_logprobs
        self._lists = {}
        self._ask(self._count)
        return self._distributions()

    def sharpen(self) -> Distributions | None:
        """Ask for longer lists; None if the server has no longer ones."""
        count = self._model.longer(self._count)
        if count is None:
            return None
        vague = [row for row, tokens in self._lists.items() if tokens.unlisted > 0 or row == self._question]
        lists = self._model.next_tokens({row: self._tokens(row) for row in vague}, count)
        if isinstance(lists[self._question], _Refused):
            self._model.no_more_than(self._count)
            return None
        self._count = count
        self._note_all(lists)
        return self._distributions()

    def fork(self) -> DecodingSession:
        """A copy that goes on by itself: a session is but the tokens so far."""
        twin = copy.copy(self)
        twin._failed, twin._lists, twin._asked = dict(self._failed), dict(self._lists), dict(self._asked)
        return twin

    def _tokens(self, row: int) -> tuple[int, ...]:
        return (*self._rows[row], *self._prefix)

    def _open(self) -> None:
        """Ask for the first lists; where the server refuses the very question, in the way that it wants to be asked."""
        lists = self._model.next_tokens(self._rows, self._count)
        if isinstance(lists[self._question], _Refused):
            if said := self._model.learn_dialect():
                raise ModelError(f"the question alone cannot be asked: {'; '.join(said)}")
            lists = self._model.next_tokens(self._rows, self._count)
        self._note_all(lists)

    def _ask(self, count: int) -> None:
        asked = {row: self._tokens(row) for row in self._rows if row not in self._failed}
        self._note_all(self._model.next_tokens(asked, count))

    def _note_all(self, lists: Mapping[int, TokenList | ModelError]) -> None:
        for row, found in lists.items():
            self._note(row, found)
        if self._question in self._failed:
            raise ModelError(f"the question alone cannot be asked: {self._failed[self._question]}")

    def _note(self, row: int, found: TokenList | Abstention | ModelError) -> None:
        if isinstance(found, ModelError):
            self._book(row, Usage())
        elif isinstance(found, Abstention):
            self._book(row, *found.asked)
            return
        else:
            self._book(row, found.usage)
        if isinstance(found, TokenList):
            self._lists[row] = found
        else:
            self._failed[row] = str(found)
            self._lists.pop(row, None)

    def _abstentions(self) -> Any:
        rows = {row: self._rows[row] for row in self._lists if row != self._question}
        abstentions = self._model.abstentions(rows, self._lists)
        for row, found in abstentions.items():
            self._note(row, found)
        return np.array([_number(abstentions.get(row)) for row in range(self._question)])

    def _book(self, row: int, *usages: Usage) -> None:
        self._asked[row] = (*self._asked.get(row, ()), *usages)

    def _distributions(self) -> Distributions:
        highest = max(max(tokens.listed, default=0) for tokens in self._lists.values())
        width = max(self._model.codec.size, highest + 1)
        rows = np.zeros((len(self._rows), width))
        for row, tokens in self._lists.items():
            rows[row, list(tokens.listed)] = list(tokens.listed.values())
        unlisted = tuple(self._lists[row].unlisted if row in self._lists else 0.0 for row in range(self._question))
        return Distributions(
            rows[:-1],
            rows[-1],
            noise=max((*unlisted, self._lists[self._question].unlisted)),
            unlisted=unlisted,
            failures=tuple(self._failed.get(row) for row in range(self._question)),
            spent=tuple(together(self._asked[row]) for row in self._rows),
            calls=sum(map(len, self._asked.values())),
        )


def _number(found: Abstention | ModelError | None) -> float:
    return found.probability if isinstance(found, Abstention) else math.nan


def _is_refusal(status: int | None, words: str) -> bool:
    """Whether a server will not do what was asked; llama-cpp-python says so with the status 500."""
    return status in _REFUSED or (status == 500 and "validation error" in words)


def _explained(error: ModelError, status: int | None, count: int) -> ModelError:
    """A refusal with what decoding aggregation needs of a server."""
    words = str(error)
    if status in (404, 405, 501):
        return _Refused(f"{words}. Decoding aggregation needs the completions API (/v1/completions), not chat alone")
    if _is_refusal(status, words):
        if "logprob" in words.casefold():
            return _Refused(
                f"{words}. {count} log-probabilities per token were asked for: lower top_logprobs, or raise the "
                "server's cap (vLLM: --max-logprobs)"
            )
        if "prompt" in words.casefold() or "token" in words.casefold():
            return _Refused(f"{words}. Prompts go out as token ids, which the server must take")
        return _Refused(words)
    return error
