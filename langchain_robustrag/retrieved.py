"""Finds documents in a tool's result: lists, pairs with scores, dicts, content blocks, messages, commands, JSON.

What a tool returns as objects has the tool's own structure, and each document in it is one. Text has no structure that
counts: whoever wrote a part of it could have written all of it, so documents that are read out of JSON text are kept
apart but earn no radius.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from types import ModuleType
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

MOST_DOCUMENTS = 10_000
_MOST_PARTS = 200_000  # that are looked at in one result
_DEEPEST = 50
_LONGEST_JSON = 5_000_000  # characters
_MOST_WRAPPED = 3  # JSON texts inside of JSON texts
_TEXT_KEYS = ("page_content", "content", "text", "snippet", "body", "raw_content", "markdown", "summary")
_SOURCE_KEYS = ("source", "url", "link", "href", "uri")
_TEXT_BLOCKS = ("text", "output_text")


class UnreadableError(ValueError):
    """A result is too deep or too large to be searched."""


def documents_in(value: Any, *, objects_only: bool = False) -> list[Document]:
    """Return every document in a value, in order; the same one counts once.

    Args:
        value: what a tool returned.
        objects_only: leave out dicts and content blocks, whose number whoever writes a page of JSON can choose.

    Raises:
        UnreadableError: the value is too deep or too large.
    """
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, Document) for item in value):
        return list(value)
    found: list[Document] = []
    known: set[str] = set()
    for part in _parts(value):
        document = None if objects_only and isinstance(part, Mapping) else _document(part)
        if document is not None and (key := repr((document.page_content, document.metadata))) not in known:
            known.add(key)
            found.append(document)
    if len(found) > MOST_DOCUMENTS:
        raise UnreadableError(f"{len(found)} documents in one result; at most {MOST_DOCUMENTS} are read")
    return found


def blocks_in(content: Any) -> list[Document]:
    """Return the content blocks of an MCP result as documents, if there are several or one names a resource; else none.

    A text block is a document of its own, named by its place where it does not say its source. Blocks that show no
    text, such as images, are left out: one of them must not withhold what the others say.
    """
    if not isinstance(content, list) or (len(content) < 2 and not any(map(_resource, content))):
        return []
    shown = (_resource(block) or _text_block(at, block) for at, block in enumerate(content))
    return [document for document in shown if document is not None]


def _text_block(place: int, block: Any) -> Document | None:
    if isinstance(block, Mapping) and block.get("type") == "file" and isinstance(block.get("url"), str):
        return Document(block["url"], metadata={"source": block["url"]})  # a `resource_link`, as langchain.mcp shows it
    text = _block_text(block)
    if text is None:
        return None
    parsed = _parsed(text)
    record = _record(parsed) if isinstance(parsed, Mapping) else None
    if record is not None and record.metadata:
        return record
    return Document(text, metadata={"source": f"block {place + 1} of the result"})


def _resource(block: Any) -> Document | None:
    """Return a `resource_link` of MCP, or an embedded resource with text, as a document; None for anything else."""
    if not isinstance(block, Mapping):
        return None
    inner = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(inner, Mapping) or block.get("type") not in ("resource", "resource_link"):
        return None
    texts = [inner[key] for key in ("title", "name", "description", "text") if isinstance(inner.get(key), str)]
    uri = inner.get("uri") or inner.get("url")
    return Document("\n".join(dict.fromkeys(texts)), metadata={} if uri is None else {"source": str(uri)})


def records_in(value: Any) -> list[Document]:
    """Return the rows of a result list, such as `{"url": ..., "content": ...}`, as documents.

    Raises:
        UnreadableError: the value is too deep or too large.
    """
    return [r for part in _parts(value) if isinstance(part, Mapping) and (r := _record(part)) is not None]


def sourced_records_in(value: Any) -> list[Document]:
    """Return those rows that name their source; ordinary tools seldom return any.

    Raises:
        UnreadableError: the value is too deep or too large.
    """
    return [record for record in records_in(value) if record.metadata]


def parsed_texts(value: Any, depth: int = 0) -> list[Any]:
    """Return the contents of the JSON texts in a value, JSON texts inside of JSON texts included.

    Raises:
        UnreadableError: the value is too deep or too large.
    """
    found = [parsed for part in _parts(value) if isinstance(part, str) and (parsed := _parsed(part)) is not None]
    inner = (
        [text for parsed in found for text in parsed_texts(parsed, depth + 1)]
        if found and depth < _MOST_WRAPPED
        else []
    )
    return found + inner


def texts_of(value: Any) -> list[str]:
    """Return the texts in a value.

    Raises:
        UnreadableError: the value is too deep or too large.
    """
    return [part for part in _parts(value) if isinstance(part, str)]


def _parsed(text: str) -> Any:
    """Return the content of a JSON text; None unless it is an object or a list."""
    if len(text) > _LONGEST_JSON or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def text_of(content: Any) -> str | None:
    """Return a message's content as one text; None if it holds more than text, or has no known form."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [_block_text(block) for block in content]
    return None if any(text is None for text in texts) else "\n\n".join(str(text) for text in texts)


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") in _TEXT_BLOCKS and isinstance(block.get("text"), str):
        return str(block["text"])
    return None


def _parts(value: Any) -> Iterator[Any]:
    """Yield the value and everything in it, down to documents, which are not taken apart."""
    waiting, seen, looked = [(value, 0)], set[int](), 0
    keep = []  # ids are only good as long as their objects live
    while waiting:
        part, depth = waiting.pop()
        looked += 1
        if depth > _DEEPEST or looked > _MOST_PARTS:
            raise UnreadableError("the result is too deep or too large to be looked through")
        inner = [] if isinstance(part, str) else _inside(part)
        if inner and id(part) in seen:
            continue
        seen.add(id(part))
        keep.append(part)
        yield part
        if _document(part) is None:
            waiting.extend((item, depth + 1) for item in reversed(inner))


def _inside(part: Any) -> list[Any]:
    if isinstance(part, (Mapping, ValuesView)):
        return list(part.values() if isinstance(part, Mapping) else part)
    if isinstance(part, (Sequence, Set)) and not isinstance(part, (str, bytes, bytearray, range, memoryview)):
        return list(part)
    if isinstance(part, BaseMessage):
        return [part.content, getattr(part, "artifact", None)]
    return list(_fields(part).values())


def _fields(part: Any) -> dict[str, Any]:
    """Return the fields of an object; none for functions, classes and modules, which LangChain makes no text of."""
    if isinstance(part, BaseModel):
        return {name: getattr(part, name, None) for name in type(part).model_fields}
    if isinstance(part, (type, ModuleType)) or callable(part):
        return {}
    slots = [vars(cls).get("__slots__", ()) for cls in type(part).__mro__ if cls.__module__ != "builtins"]
    names = [name for names in slots for name in ([names] if isinstance(names, str) else names)]
    return {**{name: getattr(part, name, None) for name in names}, **getattr(part, "__dict__", {})}


def _document(part: Any) -> Document | None:
    """Return the document in a part: a `Document`, one as a dict, or a content block; None for anything else."""
    if isinstance(part, Document):
        return part
    if not isinstance(part, Mapping):
        fields = {} if isinstance(part, (str, list, tuple)) else _fields(part)
        return _document(fields) if isinstance(fields.get("page_content"), str) else None
    if isinstance(part.get("page_content"), str):
        metadata = part.get("metadata")
        return Document(part["page_content"], metadata=dict(metadata) if isinstance(metadata, Mapping) else {})
    if part.get("type") in ("search_result", "document", "text-plain"):
        return _shown(part)
    return _resource(part)


def _shown(block: Mapping[str, Any]) -> Document | None:
    """Return a `search_result`, `document` or `text-plain` block as a document; None without readable text."""
    source = block.get("source")
    body = source if isinstance(source, Mapping) else block
    texts = [body.get(key) for key in ("content", "text", "data") if body.get(key) is not None]
    if not texts or body.get("type") in ("base64", "url", "file"):
        return None
    text = text_of(texts[0] if isinstance(texts[0], (str, list)) else [texts[0]])
    if text is None:
        return None
    named = {"source": source if isinstance(source, str) else None, "title": block.get("title")}
    return Document(text, metadata={key: str(value) for key, value in named.items() if value is not None})


def _record(part: Mapping[Any, Any]) -> Document | None:
    text = next((part[key] for key in _TEXT_KEYS if isinstance(part.get(key), str) and part[key].strip()), None)
    source = next((part[key] for key in _SOURCE_KEYS if isinstance(part.get(key), str)), None)
    if text is None or (source is None and "title" not in part and "page_content" not in part):
        return None
    return Document(text, metadata={} if source is None else {"source": source})
