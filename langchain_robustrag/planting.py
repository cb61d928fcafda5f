"""Puts canaries into what retrievers, stores, loaders and tools return, whatever shape it has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from robustrag_integrations.audit.canaries import Canaries

_SOURCE = "https://canary.example"
_DEEPEST = 20


def with_canaries(found: list[Any], name: str, canaries: Canaries, *, alone: bool) -> list[Any]:
    """Return found documents, or pairs of them with scores, with a planted one in front and a mark in each other.

    Args:
        found: what was retrieved.
        name: what retrieved it.
        canaries: those of the check.
        alone: True to leave the others out.
    """
    first = found[0] if found else Document("")
    order = _planted_document(first[0] if isinstance(first, tuple) else first, canaries.order(name))
    planted = (order, *first[1:]) if isinstance(first, tuple) else order
    return [planted, *([] if alone else [_marked(item, canaries.mark(name)) for item in found])]


def are_documents(found: object) -> bool:
    """True for a list of documents, or of pairs of documents with scores."""
    items = (
        [item[0] if isinstance(item, tuple) and item else item for item in found] if isinstance(found, list) else [0]
    )
    return all(isinstance(item, Document) for item in items)


def with_order(value: Any, order: str, depth: int = 0) -> tuple[Any, bool]:
    """Return a value with the order in one of its texts, or as one more document; and whether there was a place."""
    if isinstance(value, str):
        return _in_text(value, order, depth), True
    if isinstance(value, Document):
        return _with_text(value, f"{value.page_content}\n\n{order}"), True
    if depth > _DEEPEST:
        return value, False
    if isinstance(value, list) and value and all(isinstance(item, Document) for item in value):
        return [_planted_document(value[0], order), *value], True
    if isinstance(value, tuple) and len(value) == 2:  # content and artifact, or a document with its score
        pair = [with_order(item, order, depth + 1) for item in value]
        return tuple(item for item, _ in pair), any(done for _, done in pair)
    if isinstance(value, (list, tuple)):
        items = list(value)
        done = _in_one(items, range(len(items)), order, depth)
        return (items if isinstance(value, list) else tuple(items)), done
    if isinstance(value, Mapping):
        changed = dict(value)
        return changed, _in_one(changed, _likeliest(changed), order, depth)
    if isinstance(value, BaseMessage):
        content, done = with_order(value.content, order, depth + 1)
        artifact, more = with_order(getattr(value, "artifact", None), order, depth + 1)
        fields = {"content": content, **({"artifact": artifact} if more else {})}
        return value.model_copy(update=fields), done or more
    if type(value).__name__ == "Command":
        parts = dict(value.update) if isinstance(value.update, Mapping) else {"": value.update}
        changed = {key: with_order(part, order, depth + 1) for key, part in parts.items()}  # any may reach a prompt
        update = {key: part for key, (part, _) in changed.items()}
        given = update if isinstance(value.update, Mapping) else update[""]
        return replace(value, update=given), any(done for _, done in changed.values())
    return (f"{value}\n\n{order}", True) if isinstance(value, (int, float)) and depth == 0 else (value, False)


def _in_text(text: str, order: str, depth: int) -> str:
    try:
        parsed = json.loads(text) if text.lstrip().startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        parsed = None
    if parsed is not None:
        planted, done = with_order(parsed, order, depth + 1)
        return json.dumps(planted) if done else f"{text}\n\n{order}"
    return f"{text}\n\n{order}"


def _in_one(items: Any, keys: Any, order: str, depth: int) -> bool:
    """Plant the order in the first of these items that has a place for it: one planted text, and no more."""
    for key in keys:
        items[key], done = with_order(items[key], order, depth + 1)
        if done:
            return True
    return False


def _likeliest(mapping: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of a mapping, those of nested values and long texts before those of names and addresses."""
    shown = {key: value for key, value in mapping.items() if key not in ("type", "id")}
    return sorted(shown, key=lambda key: -len(shown[key]) if isinstance(shown[key], str) else -sys.maxsize)


def _planted_document(like: Document, order: str) -> Document:
    """Return a document like another one, with the order as its text and a source of its own."""
    named = {key: _SOURCE for key in ("source", "url") if key in like.metadata or key == "source"}
    return like.model_copy(update={"page_content": order, "metadata": {**like.metadata, **named}, "id": None})


def _marked(item: Any, mark: str) -> Any:
    if isinstance(item, tuple):
        return (_marked(item[0], mark), *item[1:])
    return _with_text(item, f"{item.page_content} {mark}")


def _with_text(document: Document, text: str) -> Document:
    return document.model_copy(update={"page_content": text})
