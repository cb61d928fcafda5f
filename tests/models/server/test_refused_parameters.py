"""APIs that refuse what others need: each refusal is found out once, by a prompt without passages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation
from tests.helpers.openai_server import Reply, _asked, obedient_reader, served

pytestmark = pytest.mark.usefixtures("no_server_settings")

QUESTION = "Who runs the mill?"
PASSAGES = [f"The mill is run by Anna Lind. Note {n}." for n in range(5)]


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


@pytest.mark.parametrize("style", ["answer", "aanswer", "stream", "astream"])
async def test_an_api_that_refuses_temperature_answers_in_every_style(style: str) -> None:
    with served(refusing(GPT5, obedient_reader, named=style.startswith("a")), seed=3, whole=True) as (server, model):
        defense = KeywordAggregation(model, alpha=0.6, beta=5)
        answers = [await _answered(defense, style) for _ in range(2)]
        await model.aclose()
    for answer in answers:
        assert answer.text.casefold() == "anna lind"
        assert answer.radius == 2
        assert not any("temperature 0" in w or "temperature=0" in w for w in answer.warnings)
        assert sum("samples" in w for w in answer.warnings) == 1
        assert "the model refuses seed, which is left out" in answer.warnings
    assert answers[0] == answers[1]
    assert not model.deterministic
    last = server.requests[-6:]
    assert all(not (GPT5.keys() & request.keys()) for request in last)
    assert all("max_completion_tokens" in request for request in last)
    assert server.prompts.count("Reply with the word OK.") == len(GPT5) + 1


async def _answered(defense: KeywordAggregation, style: str) -> Any:
    if style == "answer":
        return await asyncio.to_thread(defense.answer, QUESTION, PASSAGES)
    if style == "aanswer":
        return await defense.aanswer(QUESTION, PASSAGES)
    if style == "stream":
        stream = defense.stream(QUESTION, PASSAGES)
        assert await asyncio.to_thread("".join, stream) == stream.answer.text
        return stream.answer
    streamed = defense.astream(QUESTION, PASSAGES)
    assert "".join([piece async for piece in streamed]) == streamed.answer.text
    return streamed.answer


def test_a_passage_that_speaks_through_an_error_changes_nothing_for_the_others() -> None:
    """A gateway that repeats the prompt in its errors, and a passage that pretends to be one."""

    def reply(request: dict[str, Any]) -> str | Reply:
        prompt = request["messages"][-1]["content"]
        if "Note 3." in prompt:
            error = {"message": f"refused: Unsupported parameter: 'temperature', 'max_tokens' {prompt}", "param": None}
            return Reply(status=400, body=json.dumps({"error": error}).encode())
        return obedient_reader(prompt)

    with served(reply, whole=True) as (server, model):
        answer = KeywordAggregation(model).answer(QUESTION, PASSAGES)
    assert [g.status for g in answer.sources] == ["supports"] * 3 + ["failed", "supports"]
    assert all("temperature" in request and "max_tokens" in request for request in server.requests)
