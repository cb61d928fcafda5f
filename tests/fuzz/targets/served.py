"""What an OpenAI-compatible server may send, read by the official client's own types."""

from __future__ import annotations

from typing import Any

from openai._models import construct_type
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.replies import Fingerprints, StreamEnd, said_by_server, text_of
from robustrag_integrations.models.server.token_lists import token_list
from tests.fuzz.hostile import name, spoiled, text, value
from tests.fuzz.source import Source
from tests.fuzz.target import Target


def completions(source: Source) -> None:
    """A completion holds a text, or it is a ModelError."""
    message = {"role": "assistant", "content": text(source), "refusal": source.pick((None, name(source)))}
    reason = source.pick(("stop", "length", "content_filter", name(source)))
    choice = {"index": 0, "message": message, "finish_reason": reason}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    reply = construct_type(type_=ChatCompletion, value=spoiled(source, {**body, "system_fingerprint": name(source)}))
    marks = Fingerprints()
    marks.note(reply)
    assert all(len(mark) <= 80 for mark in marks.seen)
    try:
        assert isinstance(text_of(reply), str)
    except ModelError:
        return


def streams(source: Source) -> None:
    """A stream gives pieces of text, and ends properly or in a ModelError."""
    pieces = source.some(lambda: text(source, 2, 300), 4)
    end = StreamEnd()
    try:
        for number, piece in enumerate(pieces):
            reason = "stop" if number == len(pieces) - 1 and source.below(4) else None
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": reason}
            whole = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            chunk = construct_type(type_=ChatCompletionChunk, value=spoiled(source, whole))
            assert isinstance(end.piece_of(chunk), str)
        end.check()
    except ModelError:
        return


class _ServersError(Exception):
    """What the client raises, with whatever the server has put into it."""

    def __init__(self, body: Any, status: Any) -> None:
        super().__init__(str(status))
        self.body, self.status_code = body, status


def server_errors(source: Source) -> None:
    """A server's error is put into words, whatever is in it."""
    body = spoiled(source, {"message": text(source), "code": None}, 3)
    assert isinstance(said_by_server(_ServersError(body, value(source))), str)


class _Words:
    """A vocabulary of a few texts."""

    def token_of(self, text: str) -> int | None:
        return {"Paris": 1, "a": 2, " ": 3}.get(text)


def token_lists(source: Source) -> None:
    """What a server lists are probabilities, and what it leaves out has no more than what is left over; or an error."""
    names = [source.pick((f"token_id:{source.below(9)}", "Paris", name(source))) for _ in range(source.below(6))]
    values = (-0.1, -3.5, 0, -1e-7, 1e-3, float("nan"), float("-inf"), float("inf"), "-1", None, 10**400)
    top = {n: source.pick(values) if source.chance(4) else -0.5 - source.below(100) / 10 for n in names}
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.1], "text_offset": [0], "top_logprobs": [top]}
    choice = {"index": 0, "text": text(source, 1), "finish_reason": "length", "logprobs": logprobs}
    body = {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
    reply = construct_type(type_=Completion, value=spoiled(source, body))
    try:
        found = token_list(reply, source.between(1, 4), _Words())
    except ModelError:
        return
    assert all(0 <= p <= 1 for p in found.listed.values())
    assert 0 <= found.unlisted <= 1 + 1e-4
    assert sum(found.listed.values()) <= 1 + 1e-2


TARGETS = (
    Target("completions", completions, 4),
    Target("server-errors", server_errors, 4),
    Target("streams", streams, 3),
    Target("token-lists", token_lists, 4),
)
