"""What an OpenAI-compatible server may send, read by the official client's own types."""

from __future__ import annotations

from typing import Any

from openai._models import construct_type
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.openai_replies import Fingerprints, StreamEnd, said_by_server, text_of
from tests.fuzz.hostile import name, text, value
from tests.fuzz.source import Source
from tests.fuzz.target import Target


def spoiled(source: Source, whole: Any, one_in: int = 12) -> Any:
    """The value with parts of it missing, or replaced by anything."""
    if source.chance(one_in):
        return value(source)
    if isinstance(whole, dict):
        return {k: spoiled(source, v, one_in) for k, v in whole.items() if not source.chance(2 * one_in)}
    if isinstance(whole, list):
        return [spoiled(source, v, one_in) for v in whole]
    return whole


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


TARGETS = (
    Target("completions", completions, 4),
    Target("server-errors", server_errors, 4),
    Target("streams", streams, 3),
)
