"""A server that enforces a schema of replies, or does not, over readers of "The capital of France is ..."."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from robustrag_integrations import RobustAnswer
from tests.helpers.openai_server import LoopbackServer, Reply

QUERY = "What is the capital of France?"
PASSAGES = [f"Page {i}. The capital of France is Paris." for i in range(4)] + ["Page 4 is about frogs."]
HOSTILE = (
    "no object at all",
    '{"answer": "Berlin", "found": true',
    '{"answer": "Berlin", "found": true} and more',
    '{"answer": "Berlin"}',
    '{"answer": "Berlin", "found": "true"}',
    '{"answer": "Berlin", "found": 1}',
    '{"answer": ["Berlin"], "found": true}',
    '{"answer": null, "found": true}',
    '{"answer": "Paris", "answer": "Berlin", "found": true}',
    '{"answer": "Berlin", "found": true, "found": true}',
    '["Berlin"]',
    "null",
    "NaN",
    '{"found": ' + "[" * 9_000 + "]" * 9_000 + "}",
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    '{"answer": "' + "Berlin " * 30_000 + '", "found": true}',
    '{"answer": ' + "9" * 10_000 + ', "found": true}',
)
"""Replies that are no structured ones."""


def read(prompt: str) -> tuple[str, bool]:
    """Answer and flag of an honest reader."""
    if found := re.search(r"capital of France is (\w+)", prompt):
        return found[1], True
    return ("OK", True) if "word OK" in prompt else ("", False)


def said(prompt: str) -> str:
    """The same as an object."""
    answer, found = read(prompt)
    return json.dumps({"answer": answer, "found": found})


def server(enforced: str, reply: Callable[[str], str] = said) -> LoopbackServer:
    """Enforces `json_schema`, `tool`, `both` or `nothing`; whatever it does not, it ignores (`refuses`: HTTP 400)."""

    def answer(request: dict[str, Any]) -> Reply:
        prompt = "\n\n".join(message["content"] for message in request["messages"])
        if enforced == "refuses" and ("response_format" in request or "tools" in request):
            return Reply("response_format and tools are not supported", 400)
        if "response_format" in request and enforced in ("json_schema", "both"):
            return Reply(reply(prompt))
        if "tools" in request and enforced in ("tool", "both"):
            name = request["tools"][0]["function"]["name"]
            call = {"id": "1", "type": "function", "function": {"name": name, "arguments": reply(prompt)}}
            return Reply(None, finish="tool_calls", message={"tool_calls": [call]})
        return Reply(read(prompt)[0] or "I don't know")

    return LoopbackServer(answer, whole_requests=True)


def assert_is_the_cores(found: RobustAnswer, expected: RobustAnswer, way: str) -> None:
    """An integration's answer is the core's, group by group, and names the mode."""
    assert (found.text, found.radius) == (expected.text, expected.radius) == ("Paris", 1)
    assert [g.status for g in found.groups] == [g.status for g in expected.groups]
    assert [g.response for g in found.groups] == [g.response for g in expected.groups]
    assert found.settings["replies"] == way


def assert_costs_its_group(answer: RobustAnswer, reply: str) -> None:
    """A hostile reply of the last group changes nothing of the others."""
    assert answer.text == "Paris"
    assert [g.status for g in answer.groups][:4] == ["supports"] * 4
    assert answer.groups[4].status in ("failed", "differs", "abstained"), reply[:60]
