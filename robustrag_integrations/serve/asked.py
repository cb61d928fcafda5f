"""One checked request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.corpus.documents import valid_text
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.messages import question_of
from robustrag_integrations.serve.parameters import check_parameters
from robustrag_integrations.serve.refusals import RefusedError

_FIELDS = ("choices", "documents", "rank", "retrieve")


@dataclass(frozen=True)
class Asked:
    """What a client wants.

    Attributes:
        model: the name of a defence, as `/v1/models` has it.
        question: the last message.
        streamed: whether the answer is sent in pieces.
        with_usage: whether a stream ends with the token counts.
        choices: the options of a multiple-choice question.
        documents: passages that came with the request.
        retrieve: whether the server's documents are searched too.
        rank: the place (1-based) of the first of `documents` among those found.
        notes: what was ignored, in words.
    """

    model: str
    question: str
    streamed: bool = False
    with_usage: bool = False
    choices: tuple[str, ...] | None = None
    documents: tuple[Passage, ...] = ()
    retrieve: bool = True
    rank: int = 1
    notes: tuple[str, ...] = ()


def asked_of(body: Mapping[str, Any], limits: Limits, *, documents_allowed: bool) -> Asked:
    """A request from its JSON.

    Raises:
        RefusedError: the message names what is wrong.
    """
    ignored = check_parameters(body)
    model = body.get("model")
    if not isinstance(model, str):
        raise RefusedError(400, "model must be a name from /v1/models", param="model")
    question, unread = question_of(body.get("messages"), limits)
    options = _object(body, "stream_options")
    more = _object(body, "robustrag")
    if unknown := sorted(set(more) - set(_FIELDS)):
        raise RefusedError(400, f"robustrag.{unknown[0]} is unknown: {', '.join(_FIELDS)}", param="robustrag")
    documents = _documents(more.get("documents"), limits, documents_allowed)
    retrieve = _flag(more, "retrieve", default=True)
    if not retrieve and not documents:
        raise RefusedError(400, "robustrag.retrieve is false and there are no documents", param="robustrag.retrieve")
    return Asked(
        model=model,
        question=question,
        streamed=_flag(body, "stream", default=False),
        with_usage=_flag(options, "include_usage", default=False),
        choices=_choices(more.get("choices"), limits),
        documents=documents,
        retrieve=retrieve,
        rank=_rank(more.get("rank")),
        notes=(*unread, *ignored),
    )


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RefusedError(400, f"{name} must be an object", param=name)
    return found


def _flag(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    found = body.get(name)
    if found is not None and not isinstance(found, bool):
        raise RefusedError(400, f"{name} must be true or false", param=name)
    return default if found is None else found


def _rank(given: Any) -> int:
    if given is None:
        return 1
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= 1000:
        raise RefusedError(400, "robustrag.rank must be a whole number from 1 to 1000", param="robustrag.rank")
    return given


def _choices(given: Any, limits: Limits) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not 2 <= len(given) <= limits.choices or not all(map(_is_text, given)):
        raise RefusedError(
            400,
            f"robustrag.choices must be a list of 2 to {limits.choices} texts",
            param="robustrag.choices",
        )
    if sum(map(len, given)) > limits.question_chars:
        raise RefusedError(
            400, f"robustrag.choices have more than {limits.question_chars} characters", param="robustrag.choices"
        )
    return tuple(map(valid_text, given))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _documents(given: Any, limits: Limits, allowed: bool) -> tuple[Passage, ...]:
    if given is None:
        return ()
    param = "robustrag.documents"
    if not allowed:
        raise RefusedError(403, "this server takes no documents with a request (--allow-documents)", param=param)
    if not isinstance(given, list) or not 1 <= len(given) <= limits.documents:
        raise RefusedError(400, f"{param} must be a list of 1 to {limits.documents} documents", param=param)
    return tuple(_document(number, one, limits) for number, one in enumerate(given, start=1))


def _document(number: int, given: Any, limits: Limits) -> Passage:
    """A document of the client's. Without a source it is one of its own: nothing else shares its vote."""
    param = f"robustrag.documents[{number - 1}]"
    if not isinstance(given, dict) or not _is_text(given.get("text")) or set(given) - {"text", "source", "id"}:
        raise RefusedError(400, f"{param} must be an object with text, and may have source and id", param=param)
    text = given["text"]
    if len(text) > limits.document_chars:
        raise RefusedError(400, f"{param} is longer than {limits.document_chars} characters", param=param)
    names = {name: given.get(name) for name in ("source", "id")}
    for name, value in names.items():
        if value is not None and not (_is_text(value) and len(value) <= 500):
            raise RefusedError(400, f"{param}.{name} must be a text of at most 500 characters", param=param)
    own = f"request-document-{number}"
    return Passage(valid_text(text), id=valid_text(names["id"] or own), source=valid_text(names["source"] or own))
