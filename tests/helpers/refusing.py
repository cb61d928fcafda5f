"""Endpoints that refuse parameters as today's APIs do: with a 400 that names one of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.helpers.openai_server import Reply, _asked

GPT5 = {
    "temperature": "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) "
    "value is supported.",
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    "instead.",
    "seed": "Unsupported parameter: 'seed' is not supported with this model.",
}


def refusing(
    words: dict[str, str], answer: Callable[[str], str | Reply], *, named: bool = True
) -> Callable[[dict[str, Any]], str | Reply]:
    """What such an endpoint replies to a whole request; `named`: its errors have a `param` field."""

    def reply(request: dict[str, Any]) -> str | Reply:
        for name, said in words.items():
            if name in request and not (name == "temperature" and request[name] == 1):
                error = {"message": said.format(value=request[name]), "type": "invalid_request_error"}
                fields = {"param": name, "code": "unsupported_value"} if named else {}
                return Reply(status=400, body=json.dumps({"error": {**error, **fields}}).encode())
        return answer(_asked(request))

    return reply
