"""Log-probabilities of a server's replies, asked for and given up."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra openai")
torch = pytest.importorskip("torch", reason="needs the extra local")


from robustrag_integrations.models.server.model import PROBE  # noqa: E402
from robustrag_integrations.replies.reading import counted  # noqa: E402
from robustrag_integrations.text.prompts import Prompt  # noqa: E402
from tests.helpers.openai_server import Reply, _asked, served  # noqa: E402

pytestmark = pytest.mark.usefixtures("no_server_settings")

TOKENS = [{"token": t, "logprob": -0.25, "bytes": list(t.encode()), "top_logprobs": []} for t in ("Anna", " Lind")]
SAID = [Prompt(f"{n}. Who runs the mill?") for n in range(3)]
REFUSALS = {
    400: "Unsupported parameter: 'logprobs' is not supported with this model.",
    403: "You are not allowed to request logprobs from this model",
    422: "logprobs: extra fields not permitted",
}


def completion(logprobs: Any, *, chat: bool = True, **message: Any) -> Reply:
    said = {"message": {"role": "assistant", "content": "Anna Lind", **message}} if chat else {"text": "Anna Lind"}
    choice = {"index": 0, **said, "finish_reason": "stop", "logprobs": logprobs}
    return Reply(body=json.dumps({"id": "1", "object": "x", "created": 0, "model": "m", "choices": [choice]}).encode())


def test_a_chat_is_asked_for_them_and_read() -> None:
    with served(lambda request: completion({"content": TOKENS, "refusal": None}), whole=True) as (server, model):
        replies = model.generate(SAID, "isolated")
    assert [reply.logprobs for reply in replies] == [(-0.25, -0.25)] * 3
    assert [request["logprobs"] for request in server.requests] == [True] * 3


@pytest.mark.parametrize("status", REFUSALS)
def test_a_server_that_refuses_them_is_asked_without_from_then_on(status: int) -> None:
    def reply(request: dict[str, Any]) -> str | Reply:
        return Reply(REFUSALS[status], status=status) if "logprobs" in request else "Anna Lind"

    with served(reply, whole=True) as (server, model):
        replies = [model.generate([prompt], "isolated")[0] for prompt in SAID]
        assert model.warnings == ()
    assert [(r.text, r.error, r.logprobs) for r in replies] == [("Anna Lind", None, None)] * 3
    assert ["logprobs" in request for request in server.requests] == [True, True, False, False, False, False]
    assert [_asked(request) == PROBE for request in server.requests] == [False, True, True, False, False, False]


def test_those_of_a_reply_that_came_with_reasoning_are_not_known() -> None:
    with served(lambda request: completion({"content": TOKENS}, reasoning_content="Hm"), whole=True) as (_, model):
        [reply] = model.generate(SAID[:1], "isolated")
    assert (reply.text, counted(reply).logprobs) == ("Anna Lind", None)


@pytest.mark.parametrize(
    "logprobs",
    [
        None, "x", {"content": "x"}, {"content": [7, None]}, {"content": [{"token": "a"}]},
        {"content": [{"logprob": math.nan}]}, {"content": [{"logprob": 5}]}, {"content": {"logprob": -1}},
    ],
)  # fmt: skip
def test_what_is_none_costs_nothing_but_itself(logprobs: Any) -> None:
    with served(lambda request: completion(logprobs), whole=True) as (_, model):
        [reply] = model.generate(SAID[:1], "isolated")
    assert (reply.text, reply.error, reply.logprobs) == ("Anna Lind", None, None)
