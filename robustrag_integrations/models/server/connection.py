"""How an OpenAI-compatible server is reached: key, clients, and a thread for synchronous callers."""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.bounded_client import BoundedClient
from robustrag_integrations.models.server.loop_thread import LoopThread
from robustrag_integrations.models.server.replies import said_by_server

try:
    from openai import AsyncOpenAI, OpenAIError
except ImportError as error:
    raise ImportError("this model needs the openai client: pip install 'robustrag-integrations[openai]'") from error

__all__ = ["Connection", "OpenAIError"]

LARGEST_BODY = 8 << 20  # bytes of one answer
_NO_KEY = "no-key-needed"  # what the client sends to a server of the user's own that asks for none


class Connection:
    """A server as one model uses it.

    Args:
        model: the model's name, for the message.
        base_url: the server; None for OPENAI_BASE_URL or api.openai.com.
        api_key: None for OPENAI_API_KEY.
        timeout: seconds for one try.
        attempts: tries in all.
        largest: bytes of one answer.

    Raises:
        ModelError: there is neither a key nor a server that may need none.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None,
        api_key: str | None,
        *,
        timeout: float,
        attempts: int,
        largest: int = LARGEST_BODY,
    ) -> None:
        self.own_server = bool(base_url or os.environ.get("OPENAI_BASE_URL"))
        self.key = api_key or os.environ.get("OPENAI_API_KEY") or (_NO_KEY if self.own_server else None)
        if self.key is None:
            raise ModelError(
                f"the model {model!r} on api.openai.com needs a key in OPENAI_API_KEY; for a server of your own give "
                "base_url"
            )
        self.loop = LoopThread("robustrag-openai")
        self.address = base_url or os.environ.get("OPENAI_BASE_URL") or "api.openai.com"
        self._base_url = base_url
        self._timeout, self._attempts, self._largest = timeout, attempts, largest
        self._clients: weakref.WeakKeyDictionary[Any, AsyncOpenAI] = weakref.WeakKeyDictionary()

    def client(self) -> AsyncOpenAI:
        """This event loop's client: connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncOpenAI(
                api_key=self.key,
                base_url=self._base_url,
                timeout=self._timeout,
                max_retries=self._attempts - 1,
                http_client=BoundedClient(self._timeout, self._largest),
            )
        return self._clients[loop]

    def failure(self, error: OpenAIError) -> ModelError:
        """The client's error in words, without the key that some servers send back in theirs."""
        return ModelError(said_by_server(error).replace(str(self.key), "***"))

    def close(self) -> None:
        """Close the connections of synchronous callers, and end their thread."""
        if self.loop.running:
            self.loop.run(self.aclose())
        self.loop.close()

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
