"""What a client is told when there is no answer, in the shape of OpenAI's errors."""

from __future__ import annotations

import asyncio
from typing import Any

from robustrag_integrations.display import printable
from robustrag_integrations.errors import ModelError, RobustRAGError
from robustrag_integrations.redaction import redacted


class RefusedError(Exception):
    """A request that gets no answer.

    Args:
        status: the HTTP status.
        message: what is wrong and what to do; shown to the client, and not logged.
        kind: OpenAI's type of error.
        code: OpenAI's code, for programs.
        param: the parameter that is wrong.
        retry_after: seconds after which another try makes sense.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"
        self.body: dict[str, Any] = {
            "error": {
                "message": printable(redacted(message), 1000),
                "type": kind,
                "param": None if param is None else printable(param, 100),
                "code": code,
            }
        }


def refusal_of(error: Exception) -> RefusedError:
    """What a client is told of a failure."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return RefusedError(504, "the answer took too long; ask again later", kind="server_error", code="timeout")
    if isinstance(error, ModelError):
        return RefusedError(502, f"no answer: {error}", kind="server_error", code="model_failed")
    if isinstance(error, (ValueError, RobustRAGError)):  # a question too long for the model, bad choices
        return RefusedError(400, str(error))
    return RefusedError(500, "the server failed; its log names the kind of error", kind="server_error")
