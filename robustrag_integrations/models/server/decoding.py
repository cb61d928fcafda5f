"""Decoding aggregation on a server: next-token probabilities from the completions API.

Every row of a session (a group's prompt, or the question alone) has requests of its own: for several tokens as long as
it agrees with the answer, and for one token at a time after that, with the top-K log-probabilities of each. Prompts go
out as token ids, so that all rows are extended by the very same token; to servers that take no ids, as texts that the
tokenizer reads as exactly these ids. With prefix caching, each prompt is read once.

A list of K tokens leaves the others open: each has at most the probability of the last one listed, and at most what
all listed ones leave over. Rows state the lower bound (0 for what is not listed) and how much more it may be; the plan
widens every comparison by the sum of that, and has the session ask for longer lists where it could change a token.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Response
from robustrag_integrations.models.caller import ModelCaller
from robustrag_integrations.models.limits import CallLimits
from robustrag_integrations.models.local.encoding import PromptEncoder
from robustrag_integrations.models.server.completions import DIALECTS, Continuation, Dialect, continuation
from robustrag_integrations.models.server.connection import ServerError, largest_reply
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.models.server.replies import parsed
from robustrag_integrations.models.server.session import RemoteSession, ServerRefusal, Wanted
from robustrag_integrations.models.tokenizer_codec import TokenizerCodec, load_tokenizer
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece

_BY_NUMBER = {"return_tokens_as_token_ids": True}  # vLLM names tokens by number; other servers ignore it
_REFUSED = (400, 404, 422)
_PROBE = Prompt("Which river is the longest?")  # tries the dialects; it holds no passage


class _NoReply(ModelError):
    """The server did not answer; asking for less would not help."""


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
        chat: True to put prompts into the tokenizer's chat template; None: if it has one. Reasoning is turned off
            where the template has a switch for it (`enable_thinking` and the like).
        template_options: variables of the chat template; these take precedence.
        top_logprobs: K, how many tokens each request asks for; vLLM allows 20 unless it was started with more.
        max_top_logprobs: how many are asked for at most where K leave a choice open; None: until the server refuses.
        speculate: number of tokens that a row is asked for at once, as long as it agrees with the answer. All but the
            first of such a reply were computed in another shape, so choices closer than the slack are made from
            requests for one token. 1: every token of every row is a request of its own.
        max_context_tokens: number of tokens of passages that each group may have; longer ones are cut, with a warning.
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
        speculate: int = 12,
        max_context_tokens: int = 1024,
        **settings: Any,
    ) -> None:
        check_at_least(1, top_logprobs=top_logprobs, speculate=speculate, max_context_tokens=max_context_tokens)
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
        self.abstentions = self._encoder.abstentions()
        self._codec = TokenizerCodec(tokenizer, ends)
        self.top_logprobs = min(top_logprobs, self._codec.size)
        self.most_logprobs = min(max_top_logprobs or self._codec.size, self._codec.size)
        self._max_context_tokens = max_context_tokens
        self.speculate = speculate
        self.drift: float | None = None
        self._dialect = DIALECTS[0]
        self._some_tokens = {
            **{name: value for name, value in self._fields.items() if name != "stop"},
            "extra_body": {**_BY_NUMBER, **self._fields.get("extra_body", {})},
        }

    @property
    def codec(self) -> TokenizerCodec:
        """Its tokens as text."""
        return self._codec

    @property
    def warnings(self) -> tuple[str, ...]:
        """The server's warnings, and those about reasoning that cannot be turned off."""
        return (*super().warnings, *(self._encoder.frame.warnings if self._encoder.frame else ()))

    @property
    def numerics(self) -> dict[str, str]:
        """The source of the probabilities: server, length of lists, tokens per request and drift."""
        drift = "" if self.drift is None else f", lists drift by {self.drift:.1e}"
        return {
            "server": self._connection.address,
            "top_logprobs": str(self.top_logprobs),
            "speculate": f"{self.speculate}{drift}",
        }

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
        return RemoteSession(self, [e.ids for e in encoded], truncated, max_new_tokens)

    def _request(self, prompt: str, **more: Any) -> dict[str, Any]:
        ids = self._encoder.encode(Prompt(prompt)).ids
        return {"prompt": self._dialect.prompt(ids, self._codec), **self._fields, **more}

    # --- what sessions ask for

    def ask(self, wanted: Sequence[Wanted], count: int) -> list[Continuation | ModelError]:
        """Return each prompt's continuation, with the `count` most probable tokens at each position."""
        return self._loop.run(self._all(wanted, count))

    async def _all(self, wanted: Sequence[Wanted], count: int) -> list[Continuation | ModelError]:
        return list(await asyncio.gather(*(self._after(one, count) for one in wanted)))

    async def _after(self, wanted: Wanted, count: int) -> Continuation | ModelError:
        """Return a prompt's continuation. Where a reply of several tokens fails, ask for one token instead."""
        result = await self._tokens_in(self._dialect, wanted, count, self._caller)
        if wanted.length == 1 or isinstance(result, (Continuation, _NoReply)):
            return result
        one = await self._tokens_in(self._dialect, Wanted(wanted.prompt, 1), count, self._caller)
        return one if isinstance(one, ModelError) else replace(one, asked=(Usage(), *one.asked))

    async def _tokens_in(
        self, dialect: Dialect, wanted: Wanted, count: int, caller: ModelCaller
    ) -> Continuation | ModelError:
        try:
            request = {
                "prompt": dialect.prompt(wanted.prompt, self._codec),
                **self._some_tokens,
                "max_tokens": wanted.length,
                "extra_body": {**dialect.lists(count), **self._some_tokens["extra_body"]},
            }
            read = functools.partial(self._read_tokens, dialect, wanted, count)  # may have to learn all tokens' texts
            largest = largest_reply(request)
            return await caller.acall(
                lambda: self._accepted(request, lambda sent: self._connection.reply(sent, largest, read, at_once=0))
            )
        except ServerError as error:
            failed = _explained(self._shown(error), error.status, count)
        except Exception as error:
            failed = self._shown(error)
        return failed

    def _read_tokens(self, dialect: Dialect, wanted: Wanted, count: int, body: bytes) -> Continuation:
        reply = parsed(body)
        dialect.check(reply, len(wanted.prompt))
        self._fingerprints.note(reply)
        greedy = self._fields.get("temperature") == 0 and "temperature" not in self._refused
        return continuation(reply, count, wanted.length, self._codec, greedy=greedy)

    def learn_dialect(self) -> list[str]:
        """Find the server's dialect; return its refusals of all dialects if it takes none, else nothing."""
        return self._loop.run(self._learn())

    async def _learn(self) -> list[str]:
        """`learn_dialect` in the event loop; the caller may hold a slot, so none is waited for."""
        ids = self._encoder.encode(_PROBE).ids
        caller = replace(self._caller, limits=CallLimits(sys.maxsize, self._caller.limits.timeout))
        refusals: dict[str, None] = {}
        for dialect in DIALECTS:
            result = await self._tokens_in(dialect, Wanted(ids, 1), self.top_logprobs, caller)
            if isinstance(result, Continuation):
                self._dialect = dialect
                return []
            refusals[str(result)] = None
        return list(refusals)

    async def _areply(self, prompt: str) -> Response:
        try:
            response = await super()._areply(prompt)
        except ServerError as error:
            if not await self._learns_from(error):
                raise
            response = await super()._areply(prompt)
        return replace(response, text=self._encoder.opened + (response.text or ""))

    async def _astreamed(self, prompt: str) -> AsyncGenerator[Piece, None]:
        opened = self._encoder.opened
        try:
            async with aclosing(super()._astreamed(prompt)) as pieces:
                async for piece in pieces:
                    if opened:
                        yield opened
                        opened = ""
                    yield piece
        except ServerError as error:  # the request failed: nothing was streamed yet
            if not await self._learns_from(error):
                raise
            async with aclosing(self._astreamed(prompt)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _learns_from(self, error: ServerError) -> bool:
        """Learn another dialect if the server refused this one; tell whether another one is known now."""
        if self._dialect is not DIALECTS[0] or not _is_refusal(error.status, str(error)):
            return False
        await self._learn()
        return self._dialect is not DIALECTS[0]

    def _shown(self, error: Exception) -> ModelError:
        """Word a failure, without a key that the server sent back."""
        words = redacted(str(error), self._secrets())
        return ModelError(words if isinstance(error, ModelError) else f"{type(error).__name__}: {words}")


def _is_refusal(status: int | None, words: str) -> bool:
    """Tell whether a server refuses the request itself; llama-cpp-python does so with status 500."""
    return status in _REFUSED or (status == 500 and "validation error" in words)


def _explained(error: ModelError, status: int | None, count: int) -> ModelError:
    """Add to a refusal what decoding aggregation needs from a server."""
    words = str(error)
    if status in (404, 405, 501):
        return ServerRefusal(
            f"{words}. Decoding aggregation needs the completions API (/v1/completions), not chat alone"
        )
    if _is_refusal(status, words):
        if "logprob" in words.casefold():
            return ServerRefusal(
                f"{words}. {count} log-probabilities per token were asked for: lower top_logprobs, or raise the "
                "server's cap (vLLM: --max-logprobs)"
            )
        if "prompt" in words.casefold() or "token" in words.casefold():
            return ServerRefusal(f"{words}. Prompts go out as token ids, which the server must take")
        return ServerRefusal(words)
    return _NoReply(words)
