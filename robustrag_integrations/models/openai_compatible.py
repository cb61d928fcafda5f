"""Models behind an OpenAI-compatible chat API: api.openai.com, vLLM, SGLang, llama.cpp, `transformers serve`."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.callable import CallableModel

try:
    from openai import AsyncOpenAI, OpenAI, OpenAIError
except ImportError as error:
    raise ImportError("OpenAIModel needs the openai client: pip install 'robustrag-integrations[openai]'") from error

_NO_KEY = "no-key-needed"  # what the client sends to a server of the user's own that asks for none


class OpenAIModel(CallableModel):
    """A chat model behind an OpenAI-compatible server, through the official client.

    Every request asks for temperature 0 and a seed. Whether the server then answers twice the same is up to the
    server; the answer's warnings say so. The client tries again after a failed connection, a time-out, 408, 409, 429
    and 5xx, and waits as long as Retry-After says.

    Args:
        model: the model's name on the server.
        base_url: the server, up to and with `/v1`; None for OPENAI_BASE_URL or api.openai.com.
        api_key: None for the environment's OPENAI_API_KEY. A server given as `base_url` may need none.
        seed: the seed every request carries; None for none.
        temperature: above 0 the model samples, which is warned of; None leaves it out, for models that refuse it.
        max_tokens: the longest response, in tokens.
        system: a system message before every prompt.
        options: further fields of the request, for example `{"reasoning_effort": "low"}`; fields that the server knows
            and the client does not go under `extra_body`.
        timeout: seconds for one try.
        attempts: how often a request is tried in all.
        max_concurrency: how many requests may be under way at a time.
        name: the model's name in reports.

    Raises:
        ModelError: no API key is set, and none of one's own servers is named either.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        seed: int | None = 0,
        temperature: float | None = 0.0,
        max_tokens: int = 256,
        system: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        attempts: int = 3,
        max_concurrency: int = 10,
        name: str | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ValueError(f"model={model!r} must be the name of a model on the server")
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise ValueError(f"max_tokens={max_tokens!r} must be a whole number of at least 1")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts={attempts!r} must be a whole number of at least 1")
        if not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be above 0 seconds")
        super().__init__(
            self._ask,
            self._aask,
            stream_fn=self._pieces,
            async_stream_fn=self._apieces,
            max_concurrency=max_concurrency,
            attempts=1,  # the client tries again by itself
            samples=temperature != 0.0,
            name=name or model,
        )
        own_server = base_url or os.environ.get("OPENAI_BASE_URL")
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or (_NO_KEY if own_server else None)
        if self._key is None:
            raise ModelError(
                f"the model {model!r} on api.openai.com needs a key in OPENAI_API_KEY; for a server of your own give "
                "base_url"
            )
        limit = "max_tokens" if own_server else "max_completion_tokens"
        self._fields = _common_fields(model, limit, max_tokens, seed, temperature, options)
        self._system = system
        self._settings: dict[str, Any] = {
            "api_key": self._key,
            "base_url": base_url,
            "timeout": timeout,
            "max_retries": attempts - 1,
        }
        self._client = OpenAI(**self._settings)
        self._loop_clients: weakref.WeakKeyDictionary[Any, AsyncOpenAI] = weakref.WeakKeyDictionary()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Says that nobody can make a server deterministic from here."""
        return super().warnings or (
            "the model runs on a server: temperature 0 was asked for, but the radius holds only if it answers the same "
            "prompt the same way each time",
        )

    def close(self) -> None:
        """Close the connections of synchronous calls."""
        self._client.close()

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        client = self._loop_clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _request(self, prompt: str, **more: Any) -> dict[str, Any]:
        first = [] if self._system is None else [{"role": "system", "content": self._system}]
        return {"messages": [*first, {"role": "user", "content": prompt}], **self._fields, **more}

    def _ask(self, prompt: str) -> str:
        try:
            return _text_of(self._client.chat.completions.create(**self._request(prompt)))
        except OpenAIError as error:
            raise self._failure(error) from None

    async def _aask(self, prompt: str) -> str:
        calls = self._async_client().chat.completions
        try:
            return _text_of(await calls.create(**self._request(prompt)))
        except OpenAIError as error:
            raise self._failure(error) from None

    def _pieces(self, prompt: str) -> Iterator[str]:
        calls: Any = self._client.chat.completions
        end = _StreamEnd()
        try:
            with calls.create(**self._request(prompt, stream=True)) as chunks:
                for chunk in chunks:
                    yield end.piece_of(chunk)
        except OpenAIError as error:
            raise self._failure(error) from None
        end.check()

    async def _apieces(self, prompt: str) -> AsyncIterator[str]:
        calls: Any = self._async_client().chat.completions
        end = _StreamEnd()
        try:
            async with await calls.create(**self._request(prompt, stream=True)) as chunks:
                async for chunk in chunks:
                    yield end.piece_of(chunk)
        except OpenAIError as error:
            raise self._failure(error) from None
        end.check()

    def _async_client(self) -> AsyncOpenAI:
        """One client per event loop: connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._loop_clients:
            self._loop_clients[loop] = AsyncOpenAI(**self._settings)
        return self._loop_clients[loop]

    def _failure(self, error: OpenAIError) -> ModelError:
        """The client's error in words, without the key that some servers send back in theirs."""
        words = _said_by_server(error) or str(error) or type(error).__name__
        cause = f" ({error.__cause__})" if error.__cause__ is not None else ""
        return ModelError((words + cause).replace(str(self._key), "***"))


def _said_by_server(error: OpenAIError) -> str | None:
    """The status and the server's own words, where there are any."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    return f"HTTP {getattr(error, 'status_code', '?')}: {message}" if isinstance(message, str) else None


def _common_fields(
    model: str,
    limit: str,
    max_tokens: int,
    seed: int | None,
    temperature: float | None,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The fields that all requests have in common."""
    given = {"temperature": temperature, "seed": seed}
    fields = {name: value for name, value in given.items() if value is not None}
    extra = dict(options or {})
    if owned := sorted(extra.keys() & {"model", "messages", "stream", "n", "temperature", "seed"}):
        raise ValueError(f"options may not hold {', '.join(owned)}; these are arguments of their own, or fixed")
    return {"model": model, limit: max_tokens, **fields, **extra}


def _text_of(completion: Any) -> str:
    """The text of a completion.

    Raises:
        ModelError: there is none, or the server's content filter cut it.
    """
    choices = getattr(completion, "choices", None)
    if not choices:
        raise ModelError("the server sent no choices")
    _check_reason(choices[0].finish_reason)
    message = choices[0].message
    text = None if message is None else message.content
    if not isinstance(text, str):
        refusal = getattr(message, "refusal", None)
        raise ModelError(f"the server sent no text{f': {refusal}' if refusal else ''}")
    return text


def _check_reason(reason: str | None) -> None:
    if reason == "content_filter":
        raise ModelError("the server's content filter stopped the response")


class _StreamEnd:
    """Watches whether a stream of chunks came to its proper end."""

    def __init__(self) -> None:
        self._reason: str | None = None

    def piece_of(self, chunk: Any) -> str:
        """The text of one chunk; empty where it has none."""
        choices = getattr(chunk, "choices", None)
        if not choices:
            return ""
        self._reason = choices[0].finish_reason or self._reason
        _check_reason(self._reason)
        delta = choices[0].delta
        return (delta.content if delta is not None else None) or ""

    def check(self) -> None:
        """Raise ModelError if the stream broke off without saying why it ended."""
        if self._reason is None:
            raise ModelError("the server's stream broke off before the answer was complete")
