"""Chat completions in OpenAI's shape: requests checked, answers with their report in `robustrag`.

Each field of a request is followed, ignored, ignored with a warning, or refused. The last message alone is the
question. Earlier answers come from passages that nobody trusts; put together with the question, they could turn it.
Parameters that would change the meaning of the answer are refused, unknown ones, too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator

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


class _Document(BaseModel, strict=True, extra="forbid"):
    text: _Text
    source: _Name | None = None
    id: _Name | None = None


class _Extension(BaseModel, strict=True, extra="forbid"):
    documents: Annotated[list[_Document], Field(min_length=1)] | None = None
    retrieve: bool | None = None


class _Message(BaseModel, strict=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: Any = None


class _Part(BaseModel, strict=True):
    type: Literal["text"]
    text: str


class _Question(BaseModel, strict=True):
    content: str | list[_Part]


class _StreamOptions(BaseModel, strict=True):
    include_usage: bool | None = None


class ChatRequest(BaseModel, strict=True, extra="allow"):
    """A client's chat request."""

    model: str  # the name of a defence, as `/v1/models` has it
    messages: Annotated[list[_Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    robustrag: _Extension | None = None

    @cached_property
    def question(self) -> str:
        """The last message."""
        if self.messages[-1].role != "user":
            raise RequestError(400, "the last message must be the user's: it is the question", param="messages")
        try:
            content = _Question(content=self.messages[-1].content).content
        except ValidationError:
            place = f"messages[{len(self.messages) - 1}].content"
            wrong = f"{place} must be a text, or a list of parts of type text; nothing else is read"
            raise RequestError(400, wrong, param=place) from None
        question = content if isinstance(content, str) else "\n".join(part.text for part in content)
        if not question.strip():
            raise RequestError(400, "the last message is empty; ask something", param="messages")
        return question

    @property
    def with_usage(self) -> bool:
        """True if a stream ends with the token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def retrieve(self) -> bool:
        """True if the server's documents are searched too."""
        return self.robustrag is None or self.robustrag.retrieve is not False

    @cached_property
    def documents(self) -> list[Passage]:
        """Passages that came with the request. One without a source is its own: nothing else shares its vote."""
        given = (self.robustrag and self.robustrag.documents) or []
        named = ((document, f"request-document-{number}") for number, document in enumerate(given, start=1))
        return [Passage(d.text, id=d.id or own, source=d.source or own) for d, own in named]

    @model_validator(mode="after")
    def _check_other_parameters(self) -> ChatRequest:
        """Refuse parameters that are unknown, or would change the meaning of the answer."""
        for name in sorted(self._others - IGNORED - WARNED):
            if name not in NEUTRAL:
                raise RequestError(400, f"unknown parameter: {name}", code="unknown_parameter", param=name)
            value = (self.model_extra or {})[name]
            if not any(value == neutral and type(value) is type(neutral) for neutral in NEUTRAL[name]):
                wrong = f"{name} is not supported: answers are aggregated from the documents; leave it out"
                raise RequestError(400, wrong, code="unsupported_parameter", param=name)
        return self

    @property
    def _others(self) -> set[str]:
        return {name for name, value in (self.model_extra or {}).items() if value is not None}

    @property
    def notes(self) -> list[str]:
        """Ignored parts of the request, in words."""
        earlier = [message.role for message in self.messages[:-1]]
        turns = sum(role not in _INSTRUCTIONS for role in earlier)
        warned = ", ".join(sorted(self._others & WARNED))
        ignored = {
            "the system or developer message; the server's prompts decide how documents are read": turns < len(earlier),
            f"{turns} earlier messages; the last one alone is the question, so name what it is about": turns,
            f"{warned}; the server decides how its model is asked": warned,
        }
        return [f"ignored: {what}" for what, is_there in ignored.items() if is_there]


def chat_request(body: Mapping[str, Any], limits: Limits, *, documents_allowed: bool) -> ChatRequest:
    """Check a request's JSON, and return the request.

    Raises:
        RequestError: the message names what is wrong.
    """
    try:
        request = ChatRequest.model_validate(body)
        question, documents = request.question, request.documents
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise RequestError(400, f"{place}: {first['msg']}", param=place) from None
    if documents and not documents_allowed:
        wrong = "this server takes no documents with a request (--allow-documents)"
        raise RequestError(403, wrong, param="robustrag.documents")
    for param, what, size, maximum in (
        ("messages", "messages", len(request.messages), limits.messages),
        ("messages", "characters in the question", len(question), limits.question_chars),
        ("robustrag.documents", "documents", len(documents), limits.documents),
        ("robustrag.documents", "characters in a document", max((len(d.text) for d in documents), default=0),
         limits.document_chars),
    ):  # fmt: skip
        if size > maximum:
            raise RequestError(400, f"{size:,} {what}: at most {maximum:,} are read", param=param)
    if not request.retrieve and not documents:
        raise RequestError(400, "robustrag.retrieve is false and there are no documents", param="robustrag.retrieve")
    return request


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
