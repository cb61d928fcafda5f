"""What an OpenAI-compatible server may send, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.server.connection import Events, Said, parsed, response_of, server_error
from robustrag_integrations.models.server.decoding import token_list
from tests.fuzz.hostile import damaged, name, spoiled, text
from tests.fuzz.source import Source, Target

_LARGEST_EVENT = 50_000


def completions(source: Source) -> None:
    """A completion holds a text, or it is a ModelError."""
    with suppress(ModelError):
        assert isinstance(response_of(parsed(_body(source, _completion(source)))).text, str)


def streams(source: Source) -> None:
    """A stream gives pieces of text, and ends properly or in a ModelError; no event is larger than it may be."""
    pieces = source.some(lambda: text(source, 2, 300), 4)
    stream = b""
    for number, piece in enumerate(pieces):
        reason = "stop" if number == len(pieces) - 1 and source.below(4) else None
        choice = {"index": 0, "delta": {"content": piece}, "finish_reason": reason}
        whole = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        field = source.pick((b"data: ", b"data: ", b"data: ", b"data:", b": ", b"event: ", b""))
        stream += field + _body(source, whole) + source.pick((b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b""))
    events, end = Events(_LARGEST_EVENT), Said()
    try:
        step = source.between(1, len(stream) + 1)
        for at in range(0, len(stream), step):
            _read(events.read(stream[at : at + step]), end)
        _read(events.read(b"\n"), end)
        end.end_of_stream()
    except ModelError:
        return


def _read(found: Iterator[bytes], end: Said) -> None:
    for data in found:
        assert len(data) <= _LARGEST_EVENT
        assert isinstance(end.piece_of(parsed(data)), str)


def _completion(source: Source) -> Any:
    message = {"role": "assistant", "content": text(source), "refusal": source.pick((None, name(source)))}
    reason = source.pick(("stop", "length", "content_filter", name(source)))
    choices: Any = [{"index": 0, "message": message, "finish_reason": reason}]
    if source.chance(4):  # what is large, or of another shape
        choices = source.pick(
            ([{}] * source.below(5000), dict(enumerate(choices)), choices * source.below(50), [choices])
        )
    common = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return spoiled(source, {**common, "choices": choices})


def _body(source: Source, whole: Any) -> bytes:
    """A reply's bytes: sometimes nested beyond all measure, twice the same key, or damaged."""
    body = json.dumps(whole, ensure_ascii=source.chance(2)).encode("utf-8", "surrogatepass")
    if source.chance(8):
        deep = source.pick((b"[", b'{"choices":', b'[{"a":', b"9", b"-", b'"')) * source.between(1, 20_000)
        body = body.replace(b"0", deep, 1)
    if source.chance(8):
        body = b'{"choices": 1, "choices": [], ' + body[1:]
    return damaged(source, body) if source.chance(4) else body


def server_errors(source: Source) -> None:
    """A server's error is put into words, whatever is in it."""
    body = _body(source, spoiled(source, {"message": text(source), "code": None}, 3))
    status = source.pick((source.between(200, 599), source.between(300, 399)))
    assert isinstance(str(server_error(status, {"Retry-After": name(source)}, body)), str)


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
    try:
        found = token_list(parsed(_body(source, spoiled(source, body))), source.between(1, 4), _Words().token_of)
    except ModelError:
        return
    assert all(0 <= p <= 1 for p in found.listed.values())
    assert sum(found.listed.values()) <= 1 + 0.05 + 1e-9  # as much as half precision may add
    assert 0 <= found.unlisted <= 1 + 2 * 0.05 + 1e-4  # and a gap between two of them twice that


TARGETS = (
    Target("completions", completions, 4),
    Target("server-errors", server_errors, 4),
    Target("streams", streams, 3),
    Target("token-lists", token_lists, 4),
)
