"""Decoding aggregation on a server: next-token probabilities from the completions API.

Every row of a session (a source's prompt, or the question alone) has requests of its own, for one token at a time with
its top-K log-probabilities. Prompts go out as token ids, so that all rows are extended by the very same token.

A list of K tokens leaves the others open: each has at most the probability of the last one listed, and at most what
all listed ones leave over. Rows state the lower bound (0 for what is not listed) and how much more it may be; the plan
widens every comparison by the sum of that, and has the session ask for longer lists where it could change a token.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.errors import ModelError, QuorumError
from robustrag_integrations._util.redaction import redacted, secrets_of
from robustrag_integrations.answers.usage import Usage, together
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Distributions, Opening, Response
from robustrag_integrations.models.local.encoding import PromptEncoder, TokenizerCodec, load_tokenizer
from robustrag_integrations.models.reply import LOWEST, Piece, usage_of
from robustrag_integrations.models.server.connection import ServerError, choice_of, parsed
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.models.threads import BACKGROUND
from robustrag_integrations.text.prompts import Prompt

_BY_NUMBER = {"return_tokens_as_token_ids": True}  # vLLM names tokens by number; other servers ignore it
_LONGER = 8  # the factor by which lists grow where they leave a choice open
_NEGLIGIBLE = 1e-6  # a beginning of "I don't know" as improbable as this is not followed any further
_REFUSED = (400, 404, 405, 422, 501)  # statuses of a server that will never do what was asked
_BY_ID = "token_id:"
_LARGEST_ID = 1 << 22
_ROUNDING = 1e-5  # error of a sum of probabilities, as servers compute in float32 and print in decimal
_HALF = 2.0**-7  # error of a probability that was computed in half precision, from logits of up to 16
_HALF_SUM = 0.05  # excess of their sum over 1

Tokens = tuple[int, ...]
_Place = tuple[int, Tokens]  # a row, and the tokens behind its prompt


class ServerRefusal(ModelError):
    """A lasting refusal, with what decoding aggregation needs from a server."""


class RemoteDecodingModel(OpenAIModel, DecodingModel):
    """A model on an OpenAI-compatible server that gives token log-probabilities, such as vLLM or SGLang.

    It does what a `LocalModel` does: text for all defences, and next-token probabilities for decoding aggregation. The
    server must run the completions API, take prompts as token ids, and have prefix caching on for speed.

    Args:
        model, base_url, api_key: as for `OpenAIModel`.
        tokenizer: a fast transformers tokenizer, or the folder or name to load it from; None: `model` is that name. It
            must be the one that the server uses.
        chat, template_options, max_context_tokens: as for `LocalModel`.
        top_logprobs: K, how many tokens each request asks for; vLLM allows 20 unless it was started with more. Where K
            leave a choice open, more are asked for until the server refuses.
        settings: further arguments of `OpenAIModel`; with `max_concurrency` of at least the number of sources and one
            more, all rows run at once.
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
        max_context_tokens: int = 1024,
        **settings: Any,
    ) -> None:
        check_at_least(1, top_logprobs=top_logprobs, max_context_tokens=max_context_tokens)
        if unknown := sorted(settings.keys() & {"api", "temperature"}):
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
        self.codec: TokenizerCodec = TokenizerCodec(tokenizer, ends)
        self.top_logprobs = min(top_logprobs, self.codec.size)
        self.most_logprobs = self.codec.size
        self._max_context_tokens = max_context_tokens

    @property
    def warnings(self) -> tuple[str, ...]:
        """The server's warnings, and those about reasoning that cannot be turned off."""
        return (*super().warnings, *self._encoder.warnings)

    @property
    def numerics(self) -> dict[str, str]:
        """The source of the probabilities: server and length of lists."""
        return {"server": self._connection.address, "top_logprobs": str(self.top_logprobs)}

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        """Ask for the first token of every prompt; raises ModelError if the question alone cannot be asked."""
        self._encoder.refuse_reasoning()
        encoded = [self._encoder.encode(p, self._max_context_tokens) for p in (*prompts, no_retrieval)]
        return RemoteSession(self, [e.ids for e in encoded], tuple(e.truncated for e in encoded[:-1]))

    def _request(self, prompt: str, **more: Any) -> dict[str, Any]:
        return {"prompt": list(self._encoder.encode(Prompt(prompt)).ids), **self._fields, **more}

    def ask(self, prompts: Sequence[Tokens], count: int) -> list[TokenList | ModelError]:
        """Return the `count` most probable tokens after each prompt of a session."""

        async def all_of_them() -> list[TokenList | ModelError]:
            return list(await asyncio.gather(*(self._after(prompt, count) for prompt in prompts)))

        return BACKGROUND.run(all_of_them())

    async def _after(self, prompt: Tokens, count: int) -> TokenList | ModelError:
        fields = {name: value for name, value in self._fields.items() if name != "stop"}
        request = {**_BY_NUMBER, **fields, "prompt": list(prompt), "max_tokens": 1, "logprobs": count}

        def read(body: bytes) -> TokenList:
            return token_list(parsed(body), count, self.codec.token_of)

        try:
            return await self._call(lambda: self._accepted(request, read))
        except Exception as error:  # without a key that the server sent back
            words = redacted(str(error), secrets_of(*self._clients))
            if isinstance(error, ServerError) and error.status in _REFUSED:
                return ServerRefusal(
                    f"{words}. Decoding aggregation needs the completions API (/v1/completions), prompts as token ids, "
                    f"and {count} log-probabilities per token: lower top_logprobs, or raise the server's cap (vLLM: "
                    "--max-logprobs)"
                )
            return ModelError(words if isinstance(error, ModelError) else f"{type(error).__name__}: {words}")

    async def _areply(self, prompt: str) -> Response:
        response = await super()._areply(prompt)
        return replace(response, text=self._encoder.frame.opened + (response.text or ""))

    async def _astreamed(self, prompt: str) -> AsyncGenerator[Piece, None]:
        async with aclosing(super()._astreamed(prompt)) as pieces:
            if self._encoder.frame.opened:
                yield self._encoder.frame.opened
            async for piece in pieces:
                yield piece


class RemoteSession(DecodingSession):
    """The last row is the question alone. A row whose request fails is a source that abstains from then on."""

    def __init__(self, model: RemoteDecodingModel, prompts: Sequence[Tokens], truncated: tuple[bool, ...]) -> None:
        self._model = model
        self._prompts = [tuple(prompt) for prompt in prompts]
        self._question = len(prompts) - 1
        self._prefix: Tokens = ()
        self._failed: dict[int, str] = {}
        self._lists: dict[int, TokenList] = {}
        self._spent: list[tuple[Usage, ...]] = [()] * len(prompts)
        self._rounds = 0
        self._count = model.top_logprobs
        self._take(range(len(prompts)))
        abstention = self._abstentions()
        if self._question and len(self._failed) == self._question:
            raise QuorumError(0, self._question, 1, self._failed)
        self.opening = Opening(abstention, self._distributions(), truncated)

    def append(self, token: int) -> Distributions:
        """Ask for the lists after this token in every row."""
        self._prefix = (*self._prefix, token)
        self._count = self._model.top_logprobs
        self._take(self._lists)
        return self._distributions()

    def sharpen(self) -> Distributions | None:
        """Ask again for longer lists; None if the server has none."""
        count = min(self._count * _LONGER, self._model.most_logprobs)
        if count <= self._count:
            return None
        vague = [row for row, tokens in self._lists.items() if tokens.unlisted > 0 or row == self._question]
        replies = self._ask([(row, self._prefix) for row in vague], count)
        if isinstance(replies[self._question, self._prefix], ServerRefusal):
            self._model.most_logprobs = self._count
            return None
        self._count = count
        self._keep(replies)
        return self._distributions()

    def fork(self) -> DecodingSession:
        """Return an independent copy: a session is no more than its lists."""
        twin = copy.copy(self)
        twin._failed, twin._lists, twin._spent = dict(self._failed), dict(self._lists), list(self._spent)
        return twin

    def _abstentions(self) -> NDArray[np.float64]:
        """Return an upper bound on each source's probability of the whole abstention string."""
        known: dict[_Place, TokenList] = {}
        while True:
            spelled: dict[int, float] = {}
            missing: list[_Place] = []
            for row in [row for row in self._lists if row != self._question]:
                spelled[row] = sum(self._spelled(row, tokens, known, missing) for tokens in self._model.abstentions)
            if not missing:
                return np.array([spelled.get(row, np.nan) for row in range(self._question)])
            for place, reply in self._ask(list(dict.fromkeys(missing)), self._count).items():
                if isinstance(reply, TokenList):
                    known[place] = reply
                else:
                    self._fail(place[0], reply)

    def _spelled(self, row: int, string: Tokens, known: Mapping[_Place, TokenList], missing: list[_Place]) -> float:
        """Return the probability of a string, as far as it is known; add the list that it lacks."""
        probability = self._lists[row].most(string[0])
        for length in range(1, len(string)):
            if probability < _NEGLIGIBLE:
                break
            place = row, string[:length]
            if place not in known:
                missing.append(place)
                break
            probability *= known[place].most(string[length])
        return probability

    def _take(self, rows: Iterable[int]) -> None:
        self._keep(self._ask([(row, self._prefix) for row in rows], self._count))

    def _ask(self, places: Sequence[_Place], count: int) -> dict[_Place, TokenList | ModelError]:
        replies = self._model.ask([(*self._prompts[row], *tokens) for row, tokens in places], count)
        for (row, _), reply in zip(places, replies, strict=True):
            self._spent[row] = (*self._spent[row], reply.usage if isinstance(reply, TokenList) else Usage())
        self._rounds += 1
        return dict(zip(places, replies, strict=True))

    def _keep(self, replies: Mapping[_Place, TokenList | ModelError]) -> None:
        for (row, _), reply in replies.items():
            if isinstance(reply, TokenList):
                self._lists[row] = reply
            else:
                self._fail(row, reply)

    def _fail(self, row: int, error: ModelError) -> None:
        if row == self._question:
            raise ModelError(f"the question alone cannot be asked: {error}")
        self._failed.setdefault(row, str(error))
        self._lists.pop(row, None)

    def _distributions(self) -> Distributions:
        highest = max(max(tokens.listed, default=0) for tokens in self._lists.values())
        rows = np.zeros((len(self._prompts), max(self._model.codec.size, highest + 1)))
        for row, tokens in self._lists.items():
            rows[row, list(tokens.listed)] = list(tokens.listed.values())
        unlisted = {row: tokens.unlisted for row, tokens in self._lists.items()}
        return Distributions(
            rows[:-1],
            rows[-1],
            noise=max(unlisted.values()),
            unlisted=tuple(unlisted.get(row, 0.0) for row in range(self._question)),
            failures=tuple(self._failed.get(row) for row in range(self._question)),
            spent=tuple(map(together, self._spent)),
            calls=sum(map(len, self._spent)),
            rounds=self._rounds,
        )


@dataclass(frozen=True)
class TokenList:
    """The most probable next tokens of one prompt."""

    listed: Mapping[int, float]
    unlisted: float  # an upper bound on the probability of any other token, plus the error of a listed one
    usage: Usage = field(default=Usage(), compare=False)

    def most(self, token: int) -> float:
        """Return an upper bound on this token's probability; the probability itself if it is on the list."""
        return self.listed.get(token, self.unlisted)


def token_list(reply: Mapping[str, Any], wanted: int, token_of: Callable[[str], int | None]) -> TokenList:
    """Read the log-probabilities of a completion's first token, `wanted` of them; they must be probabilities.

    Log-probabilities that are all float16 or bfloat16 numbers were computed as such: `unlisted` then covers that, too.
    `token_of` gives the only token with a text, for servers that name tokens by their text: a text that several tokens
    have, or none, counts for none of them.
    """
    logprobs = choice_of(reply).get("logprobs")
    top = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    entries = top[0] if isinstance(top, list) and top else None
    if not isinstance(entries, dict) or not entries:
        raise ModelError(
            "the server sent no token log-probabilities; decoding aggregation needs a completions API that takes "
            "`logprobs`, as vLLM and SGLang have"
        )
    listed: dict[int, float] = {}
    dropped = by_text = 0
    for name, logprob in entries.items():
        probability = _probability(name, logprob)
        token, named = _token_named(name, token_of)
        by_text += not named
        if token is None:
            dropped += 1
        elif token in listed:
            raise ModelError(f"the server listed the token {token} twice")
        else:
            listed[token] = probability
    total = math.fsum(listed.values())
    half = _in_half_precision(list(entries.values()))
    if total > 1 + (_HALF_SUM if half else 1e-3):
        raise ModelError(f"the server's probabilities sum to {total:.4g}")
    left = max(0.0, 1 - total + _ROUNDING)
    if len(entries) < wanted and not by_text and left > 2 * _ROUNDING:
        # Texts that several tokens share are one key in a server's reply, so that fewer than K may be listed, and the
        # last one says nothing about those left out. Where tokens are named by number there is no such excuse.
        raise ModelError(f"the server listed {len(entries)} tokens of {wanted} that were asked for")
    whole = len(entries) >= wanted and not dropped
    last = sorted(listed.values(), reverse=True)[wanted - 1] if whole else left
    rounding = 2 * max(_HALF, total - 1) if half else 0.0  # of a gap between two of them
    return TokenList(listed, min(last, left) + rounding, usage_of(reply.get("usage")))


def _in_half_precision(logprobs: Sequence[float]) -> bool:
    """Tell whether these are all float16 numbers, or all bfloat16 numbers, which others hardly ever are."""
    exact = np.array([logprob for logprob in logprobs if logprob >= LOWEST], np.float64)
    single = exact.astype(np.float32)
    if len(exact) < 2 or not np.array_equal(single, exact):
        return False
    with np.errstate(over="ignore"):
        return bool(np.array_equal(exact.astype(np.float16), exact) or not (single.view(np.uint32) & 0xFFFF).any())


def _probability(name: Any, logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not logprob <= 1e-6:  # NaN is not, either
        raise ModelError(f"the server gave {logprob!r:.40} as the log-probability of {name!r:.40}")
    return math.exp(min(max(logprob, LOWEST), 0.0))


def _token_named(name: str, token_of: Callable[[str], int | None]) -> tuple[int | None, bool]:
    """Return the token that is meant, and whether it was named by number."""
    number = name[len(_BY_ID) :]
    if name.startswith(_BY_ID) and number.isascii() and number.isdecimal() and len(number) < 10:
        if int(number) >= _LARGEST_ID:
            raise ModelError(f"the server named a token {name[:40]}, which is beyond any vocabulary")
        return int(number), True
    return token_of(name), False
