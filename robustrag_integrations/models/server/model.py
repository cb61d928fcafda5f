"""Models behind an OpenAI-compatible server: api.openai.com, vLLM, SGLang, llama.cpp, `transformers serve`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeVar

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.callable import CalledModel
from robustrag_integrations.models.caller import CallLimits
from robustrag_integrations.models.reply import Piece
from robustrag_integrations.models.server.connection import Connection, Said, ServerError, may_pass, parsed, response_of
from robustrag_integrations.models.threads import BACKGROUND, PerLoop

Result = TypeVar("Result")

PROBE = "Reply with the word OK."
_REFUSING = (400, 422)  # statuses of an invalid request
_NAMING = (*_REFUSING, 403)  # statuses of a refused parameter
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_LEFT_OUT = ("temperature", "seed", "logprobs", *_OTHER_LIMIT)  # where the model refuses them
_OWNED = ("model", "messages", "prompt", "stream", "n", "temperature", "seed")


class OpenAIModel(CalledModel):
    """A model behind an OpenAI-compatible server.

    Every request holds the model, the prompt, a token limit, temperature 0, and the given options. Where the server
    refuses the first request, the same parameters go out once with a fixed prompt: `temperature`, `seed` or `logprobs`
    are left out from then on if that is refused, too, and a token limit goes under its other name. A model that takes
    no temperature counts as one that samples. Log-probabilities of replies that came with reasoning are not known.

    A request is sent again after a failed connection, a time-out, 408, 409, 429 and 5xx, after as long as Retry-After
    says, up to a minute; where it says longer, the request has failed.

    Args:
        model: the model's name on the server.
        base_url: the server, up to and with `/v1`; None for OPENAI_BASE_URL or api.openai.com.
        api_key: None for the environment's OPENAI_API_KEY. A server given as `base_url` may need none.
        api: `"chat"`, or `"completions"` for base models, whose answers end at an empty line unless `options` holds
            another `stop`.
        seed: the seed every request carries; None for none.
        temperature: above 0 the model samples, which is warned of; None leaves it out.
        max_tokens: the longest response, in tokens.
        options: further fields of the request, for example `{"reasoning_effort": "low"}`; `extra_headers` and
            `extra_query` are those of HTTP. `{"logprobs": None}` asks for no log-probabilities.
        timeout: seconds for one try, from connecting to the last byte and its parsing; None for no limit.
        attempts: the most tries of one request.
        max_concurrency: number of requests that may be under way at a time.

    Raises:
        ModelError: there is neither an API key nor a server of your own.
        TypeError, ValueError: an argument is invalid: a number out of range, an address without http://.
    """

    limit = "max_tokens"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api: Literal["chat", "completions"] = "chat",
        seed: int | None = None,
        temperature: float | None = 0.0,
        max_tokens: int = 256,
        options: Mapping[str, Any] | None = None,
        timeout: float | None = 60.0,
        attempts: int = 3,
        max_concurrency: int = 10,
    ) -> None:
        check_at_least(1, max_tokens=max_tokens, attempts=attempts, max_concurrency=max_concurrency)
        if not isinstance(model, str) or not model.strip():
            raise ValueError(f"model={model!r} must be the name of a model on the server")
        if temperature is not None and not (isinstance(temperature, (int, float)) and temperature >= 0):
            raise ValueError(f"temperature={temperature!r:.60} must be a number of at least 0, or None to leave it out")
        super().__init__(
            CallLimits(max_concurrency, timeout),
            model,
            aask=lambda call: self._areply(call.prompt.text),
            astream=lambda call: self._astreamed(call.prompt.text),
            clients=(self,),
            attempts=attempts,
            worth_retrying=may_pass,
        )
        self._chats = api == "chat"
        path = "/chat/completions" if self._chats else "/completions"
        self._connection = Connection(model, base_url, api_key, path=path)
        self._refused: frozenset[str] = frozenset()
        self._has_probed = False
        self._probing = PerLoop(asyncio.Lock)
        limit = "max_completion_tokens" if self._chats and not self._connection.own_server else "max_tokens"
        options = {**({} if self._chats else {"stop": ["\n\n"]}), **(options or {})}
        if owned := sorted(options.keys() & set(_OWNED)):
            raise ValueError(f"options may not hold {', '.join(owned)}; these are arguments of their own, or fixed")
        given = {"temperature": temperature, "seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        self.longest_reply = max_tokens
        self._fields: dict[str, Any] = {"model": model, limit: max_tokens, **given, **options}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about a seed, and a limit of tokens, that the model refuses."""
        left_out = ["seed"] * ("seed" in self._refused) + ["max_tokens"] * self._refused.issuperset(_OTHER_LIMIT)
        return tuple(f"the model refuses {name}, which is left out" for name in left_out)

    @property
    def repeats(self) -> Repeats:
        """The server's reproducibility: unknown at temperature 0, as a client cannot enforce it."""
        if "temperature" in self._refused:
            return Repeats("samples", "it takes no temperature")
        temperature = self._fields.get("temperature")
        if temperature is None:
            return Repeats("samples", "no temperature is sent, and most servers then sample")
        if temperature:
            return Repeats("samples", f"temperature {temperature:g}")
        seed = f" and seed {self._fields['seed']}" if "seed" in self._fields else ""
        return Repeats("unknown", f"it runs on a server, which was asked for temperature 0{seed}")

    def close(self) -> None:
        """Close the connections of synchronous calls."""
        BACKGROUND.run(self.aclose())

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        await self._connection.aclose()

    def _request(self, prompt: str, **more: Any) -> dict[str, Any]:
        if not self._chats:
            return {"prompt": prompt, **self._fields, **more}
        return {"messages": [{"role": "user", "content": prompt}], **self._fields, **more}

    def _with_logprobs(self, prompt: str) -> dict[str, Any]:
        """Ask for the log-probabilities of a reply's tokens, too, unless the user decides on it."""
        return self._request(prompt, **({} if "logprobs" in self._fields else {"logprobs": True if self._chats else 1}))

    async def _areply(self, prompt: str) -> Response:
        return await self._accepted(self._with_logprobs(prompt), lambda body: response_of(parsed(body)))

    async def _accepted(self, request: Mapping[str, Any], read: Callable[[bytes], Result]) -> Result:
        """Send a request; where it is refused, find out what the model refuses, and send it once more without."""
        before = self._refused
        try:
            return await self._connection.reply(self._without_refused(request), read)
        except ServerError as error:
            if not await self._learned(error, before):
                raise
        return await self._connection.reply(self._without_refused(request), read)

    async def _learned(self, error: ServerError, before: frozenset[str]) -> bool:
        """Tell whether more refusals are known than before a request that failed; probe for them once.

        An error's words may repeat a passage, so that it is no more than a suspicion: what counts are the errors to a
        fixed prompt. (Without `stream_options`, nothing is lost but a count of tokens.)
        """
        if _refused_in(error, ("stream_options",)):
            self._refused |= {"stream_options"}
        elif _refused_in(error, _LEFT_OUT) is None:
            return False
        async with self._probing.here():
            while not self._has_probed:
                request = self._without_refused(self._with_logprobs(PROBE))
                name = None
                try:
                    await self._connection.reply(request, parsed)
                except ServerError as refusal:
                    name = _refused_in(refusal, [name for name in _LEFT_OUT if name in request])
                    if name is None and refusal.status not in _REFUSING:
                        break
                self._refused |= {name} if name else set()
                self._has_probed = name is None
        return self._refused != before

    def _without_refused(self, request: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in request.items() if name not in self._refused}
        for name, other in _OTHER_LIMIT.items():
            if name in self._refused and name in request and other not in self._refused:
                fields.setdefault(other, request[name])
        return fields

    async def _astreamed(self, prompt: str) -> AsyncGenerator[Piece, None]:
        request = self._request(prompt, stream_options={"include_usage": True})
        while True:
            before, said = self._refused, Said()
            try:
                async with aclosing(self._connection.events(self._without_refused(request))) as events:
                    async for event in events:
                        if piece := said.piece_of(event):
                            yield piece
                yield said.end_of_stream()
                return
            except ServerError as error:
                if not await self._learned(error, before):
                    raise


def _refused_in(error: ServerError, names: Iterable[str]) -> str | None:
    """Return the parameter that a refusal names, in a field of its own or in words; None if it names none."""
    named = (name for name in names if error.param == name or re.search(rf"\b{name}\b", str(error)))
    return next(named, None) if error.status in _NAMING else None
