"""The errors that clients are sent, in the shape of OpenAI's."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.errors import ModelError, QuorumError, RobustRAGError

_LOG = logging.getLogger(__name__)
# The form of a failed call: the exception's name, then words that may quote the prompt, which holds passages.
_FAILED_CALL = re.compile(
    r"(?:the final call failed: )?(?:gave up after \d{1,4} tries: )?(?:ModelError: the model's function raised )?"
    r"([A-Za-z_]\w{0,60})(?::(?: Error code: (\d{3})\b)?|$)"
)


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: the HTTP status.
        message: the error and its fix; shown to the client, and not logged.
        kind: OpenAI's type of error.
        code: OpenAI's code, for programs.
        param: the parameter that is wrong.
        retry_after: seconds after which another try makes sense.
        closes: True if the connection ends with the reply.
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
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"
        if closes:
            self.headers["connection"] = "close"
        self.body: dict[str, Any] = {
            "error": {
                "message": printable(redacted(message), 1000),
                "type": kind,
                "param": None if param is None else printable(param, 100),
                "code": code,
            }
        }


def request_error(error: Exception) -> RequestError:
    """Return the error that a client is sent. The log gets only the failure's class: its text may quote passages."""
    if isinstance(error, RequestError):
        return error
    _LOG.error("no answer: %s", type(error).__name__)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return RequestError(504, "the answer took too long; ask again later", kind="server_error", code="timeout")
    if isinstance(error, ModelError):
        # Without the words of the model's server, which may quote passages that clients do not see.
        failed = "the final call failed" if str(error).startswith("the final call failed") else "the model failed"
        causes = [str(error)]
        if isinstance(error, QuorumError):
            failed, causes = str(error).partition(". ")[0], list(error.causes.values())
        message = f"no answer: {failed}: {', '.join(sorted(set(map(call_failure, causes))))}"
        return RequestError(502, message, kind="server_error", code="model_failed")
    if isinstance(error, (ValueError, RobustRAGError)):  # a question too long for the model, bad choices
        return RequestError(400, str(error))
    return RequestError(500, "the server failed; its log names the kind of error", kind="server_error")


def call_failure(message: str) -> str:
    """Return the class of error that a failed call names, and its HTTP status if it names one."""
    match = _FAILED_CALL.match(message)
    if match is None:
        return "an error"
    return f"{match[1]} (HTTP {match[2]})" if match[2] else match[1]
