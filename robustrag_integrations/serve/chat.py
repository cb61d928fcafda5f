"""Chat completions in OpenAI's shape: requests checked, answers with their report in `robustrag`.

Each field of a request is followed, ignored, ignored with a warning, or refused. The last message alone is the
question. Earlier answers come from passages that nobody trusts; put together with the question, they could turn it.
Parameters that would change the meaning of the answer are refused, unknown ones, too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.usage import Spending
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.endpoint import Limits
from robustrag_integrations.serve.errors import RequestError, call_failure

SCHEMA = "robustrag/serve/1"
# About the account, the bill or the cache of a provider; the answer is the same.
IGNORED = frozenset({
    "metadata", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "service_tier", "store", "user",
})  # fmt: skip
# The server decides how the model is asked: the radius holds for that.
WARNED = frozenset({
    "frequency_penalty", "max_completion_tokens", "max_tokens", "min_p", "presence_penalty", "reasoning_effort",
    "repetition_penalty", "seed", "temperature", "top_k", "top_p", "verbosity",
})  # fmt: skip
# Refused, but for the values that ask for nothing.
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "response_format": ({"type": "text"},),
    "stop": ([], ""),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "web_search_options": (),
}
_INSTRUCTIONS = frozenset({"system", "developer"})

_Text = Annotated[str, StringConstraints(pattern=r"\S")]
_Name = Annotated[str, StringConstraints(pattern=r"\S", max_length=500)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Lenient(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Document(_Strict):
    text: _Text
    source: _Name | None = None
    id: _Name | None = None


class _Extension(_Strict):
    documents: Annotated[list[_Document], Field(min_length=1)] | None = None
    retrieve: bool | None = None


class _Message(_Lenient):
    role: Literal["system", "developer", "user", "assistant"]
    content: Any = None


class _Part(_Lenient):
    type: Literal["text"]
    text: str


class _Question(_Lenient):
    content: str | list[_Part]


class _StreamOptions(_Lenient):
    include_usage: bool | None = None


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    model: str
    messages: Annotated[list[_Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    robustrag: _Extension | None = None


@dataclass(frozen=True)
class ChatRequest:
    """A client's chat request.

    Attributes:
        model: the name of a defence, as `/v1/models` has it.
        question: the last message.
        streamed: True if the answer is sent in pieces.
        with_usage: True if a stream ends with the token counts.
        documents: passages that came with the request.
        retrieve: True if the server's documents are searched too.
        notes: ignored parts of the request, in words.
    """

    model: str
    question: str
    streamed: bool
    with_usage: bool
    documents: tuple[Passage, ...]
    retrieve: bool
    notes: tuple[str, ...]


def chat_request(body: Mapping[str, Any], limits: Limits, *, documents_allowed: bool) -> ChatRequest:
    """Check a request's JSON, and return the request.

    Raises:
        RequestError: the message names what is wrong.
    """
    try:
        given = _Body.model_validate(body)
        question = _question_of(given.messages)
    except ValidationError as error:
        raise _invalid(error) from None
    ignored = _ignored_parameters(given.model_extra or {})
    more = given.robustrag or _Extension()
    if more.documents is not None and not documents_allowed:
        wrong = "this server takes no documents with a request (--allow-documents)"
        raise RequestError(403, wrong, param="robustrag.documents")
    documents = more.documents or []
    for param, what, size, maximum in (
        ("messages", "messages", len(given.messages), limits.messages),
        ("messages", "characters in the question", len(question), limits.question_chars),
        ("robustrag.documents", "documents", len(documents), limits.documents),
        ("robustrag.documents", "characters in a document", max((len(d.text) for d in documents), default=0),
         limits.document_chars),
    ):  # fmt: skip
        if size > maximum:
            raise RequestError(400, f"{size:,} {what}: at most {maximum:,} are read", param=param)
    if more.retrieve is False and not documents:
        raise RequestError(400, "robustrag.retrieve is false and there are no documents", param="robustrag.retrieve")
    return ChatRequest(
        model=given.model,
        question=question,
        streamed=bool(given.stream),
        with_usage=bool(given.stream_options and given.stream_options.include_usage),
        documents=tuple(_passage(number, document) for number, document in enumerate(documents, start=1)),
        retrieve=more.retrieve is not False,
        notes=(*_unread([message.role for message in given.messages[:-1]]), *ignored),
    )


def _question_of(messages: list[_Message]) -> str:
    if messages[-1].role != "user":
        raise RequestError(400, "the last message must be the user's: it is the question", param="messages")
    content = _Question(content=messages[-1].content).content
    question = content if isinstance(content, str) else "\n".join(part.text for part in content)
    if not question.strip():
        raise RequestError(400, "the last message is empty; ask something", param="messages")
    return question


def _passage(number: int, document: _Document) -> Passage:
    """Return a client's document as a passage. Without a source it is its own source: nothing else shares its vote."""
    own = f"request-document-{number}"
    return Passage(document.text, id=document.id or own, source=document.source or own)


def _ignored_parameters(given: Mapping[str, Any]) -> tuple[str, ...]:
    names = {name for name, value in given.items() if value is not None} - IGNORED
    for name in sorted(names - WARNED):
        if name not in NEUTRAL:
            raise RequestError(400, f"unknown parameter: {name}", code="unknown_parameter", param=name)
        if not any(given[name] == value and type(given[name]) is type(value) for value in NEUTRAL[name]):
            wrong = f"{name} is not supported: answers are aggregated from the documents; leave it out"
            raise RequestError(400, wrong, code="unsupported_parameter", param=name)
    ignored = ", ".join(sorted(names & WARNED))
    return (f"ignored: {ignored}; the server decides how its model is asked",) if ignored else ()


def _unread(roles: list[str]) -> list[str]:
    turns = sum(role not in _INSTRUCTIONS for role in roles)
    notes = []
    if turns < len(roles):
        notes.append("ignored: the system or developer message; the server's prompts decide how documents are read")
    if turns:
        notes.append(f"ignored: {turns} earlier messages; the last one alone is the question, so name what it is about")
    return notes


def _invalid(error: ValidationError) -> RequestError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    return RequestError(400, f"{place}: {first['msg']}", param=place)


class ChatResponse:
    """The objects of one response, which share an id and a time.

    Args:
        model: the name that was asked for.
    """

    def __init__(self, model: str) -> None:
        self._common = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def completion(self, answer: RobustAnswer, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {
            **self._common,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_of(answer.spending),
            "robustrag": report,
        }

    def piece(self, text: str, *, is_first: bool) -> dict[str, Any]:
        """Return a piece of a streamed answer."""
        return self._chunk({"role": "assistant", "content": text} if is_first else {"content": text})

    def last(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the end of a streamed answer."""
        return {**self._chunk({}, "stop"), "robustrag": report}

    def usage(self, spending: Spending) -> dict[str, Any]:
        """Return the token counts of a streamed answer, for clients that asked for them."""
        return {**self._common, "object": "chat.completion.chunk", "choices": [], "usage": usage_of(spending)}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._common, "object": "chat.completion.chunk", "choices": [choice]}


def usage_of(spending: Spending) -> dict[str, Any] | None:
    """Return the tokens of all calls of an answer; None where a call did not tell."""
    total = spending.total
    if total.prompt is None or total.completion is None:
        return None
    return {
        "prompt_tokens": total.prompt,
        "completion_tokens": total.completion,
        "total_tokens": total.prompt + total.completion,
        **({} if total.cached is None else {"prompt_tokens_details": {"cached_tokens": total.cached}}),
        **({} if total.reasoning is None else {"completion_tokens_details": {"reasoning_tokens": total.reasoning}}),
    }


def report_of(answer: RobustAnswer, passages: Sequence[Passage], notes: Sequence[str]) -> dict[str, Any]:
    """Return the extension field: the answer's guarantee, and each group's reply. It holds no passage's text.

    Args:
        answer: the answer.
        passages: all that was read, best first; the positions of groups and citations count in it, from 0.
        notes: warnings of the server's own.
    """
    report = answer.to_dict()
    for group in report["groups"]:
        if group["error"]:  # its words may quote the group's passages, and a warning its words
            short = call_failure(group["error"])
            quoted = printable(redacted(group["error"]), 200)
            report["warnings"] = [warning.replace(quoted, short) for warning in report["warnings"]]
            group["error"] = short
    return {
        "schema": SCHEMA,
        "abstained": answer.abstained,
        "radius": answer.radius,
        "radius_unit": answer.radius_unit,
        "radius_by_tier": answer.radius_by_tier,
        "sole_source": answer.sole_source,
        "dissent": report["dissent"],
        "warnings": [*notes, *report["warnings"]],
        "citations": [plain(citation) for citation in answer.citations],
        "passages": [{"id": p.id, "source": p.source} for p in passages],
        "answer": report,
    }
