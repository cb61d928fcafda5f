"""What an OpenAI-compatible server may send, read by the official client's own types."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from openai._models import construct_type
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.openai_compatible import OpenAIModel
from robustrag_integrations.prompts import Prompt
from tests.fuzz.checks import assert_harmless_on_a_terminal
from tests.fuzz.hostile import name, text, value
from tests.fuzz.source import Source
from tests.fuzz.target import Target


class _Stub:
    """A client whose server has already answered."""

    def __init__(self, reply: Any) -> None:
        self.chat = self.completions = self
        self._reply = reply

    def create(self, **request: Any) -> Any:
        return self._reply

    def __enter__(self) -> Any:
        return iter(self._reply)

    def __exit__(self, *error: object) -> None:
        pass


@cache
def _model() -> OpenAIModel:
    return OpenAIModel("m", "http://127.0.0.1:9/v1", "secret-key")


def _spoiled(source: Source, whole: Any) -> Any:
    """The value with parts of it replaced by anything."""
    if source.chance(8):
        return value(source)
    if isinstance(whole, dict):
        return {k: _spoiled(source, v) for k, v in whole.items() if not source.chance(12)}
    if isinstance(whole, list):
        return [_spoiled(source, v) for v in whole]
    return whole


def completions(source: Source) -> None:
    """A completion is a text or an error in one harmless line, never a crash."""
    message = {"role": "assistant", "content": text(source), "refusal": source.pick((None, name(source)))}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": source.pick(("stop", "length", "content_filter", name(source))),
    }
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    model = _model()
    model._client = _Stub(construct_type(type_=ChatCompletion, value=_spoiled(source, body)))  # type: ignore[assignment]
    response = model._respond("prompt", threading.Event())
    assert (response.text is None) != (response.error is None)
    if response.text is not None:
        assert isinstance(response.text, str)
    else:
        assert response.error is not None
        assert_harmless_on_a_terminal(response.error, lines=False)


def streams(source: Source) -> None:
    """A stream gives pieces of text or ends in a ModelError."""
    pieces = source.some(lambda: text(source, 2, 300), 4)
    chunks = []
    for number, piece in enumerate(pieces):
        end = "stop" if number == len(pieces) - 1 and source.below(4) else None
        choice = {"index": 0, "delta": {"content": piece}, "finish_reason": end}
        whole = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        chunks.append(construct_type(type_=ChatCompletionChunk, value=_spoiled(source, whole)))
    model = _model()
    model._client = _Stub(_Iterated(chunks))  # type: ignore[assignment]
    try:
        assert all(isinstance(piece, str) for piece in model.stream(Prompt("prompt")))
    except ModelError as error:
        assert_harmless_on_a_terminal(str(error), lines=False)


class _Iterated:
    """Chunks behind the context manager that the client gives."""

    def __init__(self, chunks: list[Any]) -> None:
        self._chunks = chunks

    def __enter__(self) -> Any:
        return iter(self._chunks)

    def __exit__(self, *error: object) -> None:
        pass


TARGETS = (Target("completions", completions, 4), Target("streams", streams, 2))
