"""Chat completions in OpenAI's shape: requests checked, answers with their report in `robustrag`.

The last message alone is the question: earlier answers come from passages that nobody trusts, and could turn it.
Parameters that would change the meaning of the answer are refused, unknown ones, too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.answer import Reader, RobustAnswer
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.endpoint import Limits, RequestError

SCHEMA = "robustrag/serve/3"
# About the account, the bill or the cache of a provider; the answer is the same.
IGNORED = frozenset({
    "metadata", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "service_tier", "store", "stream_options", "user",
})  # fmt: skip
# The server decides how the model is asked: the radius holds for that.
WARNED = frozenset({
    "frequency_penalty", "max_completion_tokens", "max_tokens", "min_p", "presence_penalty", "reasoning_effort",
    "repetition_penalty", "seed", "temperature", "top_k", "top_p", "verbosity",
})  # fmt: skip
# Anything else is refused, but for what asks for nothing.
NEUTRAL: Mapping[str, Any] = {
    "n": 1, "logprobs": False, "response_format": {"type": "text"}, "stop": [], "tool_choice": "auto", "tools": [],
}  # fmt: skip

_Text = Annotated[str, StringConstraints(pattern=r"\S", max_length=20_000)]
_Name = Annotated[str, StringConstraints(pattern=r"\S", max_length=500)]


class _Document(BaseModel, strict=True, extra="forbid"):
    text: _Text
    source: _Name | None = None
    id: _Name | None = None


class _Extension(BaseModel, strict=True, extra="forbid"):
    documents: Annotated[list[_Document], Field(min_length=1, max_length=50)] | None = None
    retrieve: bool | None = None
    reader: Reader | None = None


class _Message(BaseModel, strict=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: Any = None


class _Part(BaseModel, strict=True):
    type: Literal["text"]
    text: str


_QUESTION = TypeAdapter[Any](str | list[_Part])


class ChatRequest(BaseModel, strict=True, extra="allow"):
    """A client's chat request."""

    model: str  # the name of a defence, as `/v1/models` has it
    messages: Annotated[list[_Message], Field(min_length=1)]
    stream: bool | None = None
    robustrag: _Extension | None = None

    @cached_property
    def question(self) -> str:
        """The last message."""
        try:
            content = _QUESTION.validate_python(self.messages[-1].content, strict=True)
        except ValidationError:
            content = ""
        question = content if isinstance(content, str) else "\n".join(part.text for part in content)
        if self.messages[-1].role != "user" or not question.strip():
            wrong = "the last message must be the user's, and a text or a list of parts of type text: the question"
            raise RequestError(400, wrong, param="messages")
        return question

    @property
    def is_read_by_model(self) -> bool:
        """True if the answer goes into another prompt."""
        return self.robustrag is not None and self.robustrag.reader == "model"

    @property
    def retrieve(self) -> bool:
        """True if the server's documents are searched too."""
        return self.robustrag is None or self.robustrag.retrieve is not False

    @cached_property
    def documents(self) -> list[Passage]:
        """Passages that came with the request. One without a source is its own: nothing else shares its vote."""
        given = (self.robustrag and self.robustrag.documents) or []
        named = ((document, f"request-document-{number}") for number, document in enumerate(given, start=1))
        return [Passage(d.text, id=d.id or own, origin=d.source or own) for d, own in named]

    @model_validator(mode="after")
    def _check_other_parameters(self) -> ChatRequest:
        for name in sorted(self._others - IGNORED - WARNED):
            value, neutral = (self.model_extra or {})[name], NEUTRAL.get(name)
            if type(value) is not type(neutral) or value != neutral:
                wrong = f"{name} is not supported: answers are aggregated from the documents; leave it out"
                raise RequestError(400, wrong, code="unsupported_parameter", param=name)
        return self

    @property
    def _others(self) -> set[str]:
        return {name for name, value in (self.model_extra or {}).items() if value is not None}

    @property
    def notes(self) -> list[str]:
        """Ignored parts of the request, in words."""
        notes = []
        if len(self.messages) > 1:
            notes.append("ignored: earlier messages and instructions; the last message alone is the question")
        if warned := sorted(self._others & WARNED):
            notes.append(f"ignored: {', '.join(warned)}; the server decides how its model is asked")
        return notes


def chat_request(body: Mapping[str, Any], limits: Limits, *, documents_allowed: bool) -> ChatRequest:
    """Check a request's JSON, and return the request; a RequestError names what is wrong."""
    try:
        request = ChatRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise RequestError(400, f"{place}: {first['msg']}", param=place) from None
    if request.documents and not documents_allowed:
        wrong = "this server takes no documents with a request (--allow-documents)"
        raise RequestError(403, wrong, param="robustrag.documents")
    most = limits.question_chars
    if (size := len(request.question)) > most:
        wrong = f"{size:,} characters in the question: at most {most:,} are read"
        raise RequestError(400, wrong, param="messages")
    if not request.retrieve and not request.documents:
        raise RequestError(400, "robustrag.retrieve is false and there are no documents", param="robustrag.retrieve")
    return request


class ChatResponse:
    """The objects of one response of a model, which share an id and a time."""

    def __init__(self, model: str) -> None:
        self._common = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, text: str, usage: Usage, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response."""
        message = {"role": "assistant", "content": text, "refusal": None}
        return {
            **self._common,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": usage_of(usage),
            "robustrag": report,
        }

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        """Return a chunk of a streamed answer."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._common, "object": "chat.completion.chunk", "choices": [choice], **more}


def usage_of(usage: Usage) -> dict[str, Any] | None:
    """Return the tokens of all calls of an answer; None where a call did not tell."""
    read, made = usage.prompt, usage.completion
    if read is None or made is None:
        return None
    return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}


def prompt_report(answer: RobustAnswer) -> dict[str, Any]:
    """Return the extension field of an answer that another model reads: no name, and no word of a source."""
    names = ("abstained", "decided_by", "radius", "radius_unit")
    return {"schema": SCHEMA, "withheld": answer.is_withheld, **{name: getattr(answer, name) for name in names}}


def report_of(answer: RobustAnswer, passages: Sequence[Passage], notes: Sequence[str]) -> dict[str, Any]:
    """Return the extension field: the answer's guarantee, and each source's reply. It holds no passage's text.

    Positions of sources and citations count in `passages`, all that was read, best first; `notes` are the server's own.
    """
    report = answer.to_dict()
    for source in report["sources"]:
        if source["error"]:  # its words may quote the source's passages, and a warning its words
            quoted, source["error"] = printable(redacted(source["error"]), 200), "the call failed"
            report["warnings"] = [warning.replace(quoted, source["error"]) for warning in report["warnings"]]
    return {
        "schema": SCHEMA,
        "abstained": answer.abstained,
        "decided_by": answer.decided_by,
        "radius": answer.radius,
        "radius_unit": answer.radius_unit,
        "warnings": [*notes, *report["warnings"]],
        "citations": [plain(citation) for citation in answer.citations],
        "passages": [{"id": p.id, "origin": p.origin} for p in passages],
        "answer": report,
    }
