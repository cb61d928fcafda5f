"""Finds documents in a tool's result: lists, pairs with scores, dicts, content blocks, messages, commands, JSON.

What a tool returns as objects has the tool's own structure, and each document in it is one. Text has no structure that
counts: whoever wrote a part of it could have written all of it, so none is ever read out of it but for the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

MOST_DOCUMENTS = 10_000
_MOST_PARTS = 200_000  # that are looked at in one result
_DEEPEST = 50
_LONGEST_JSON = 5_000_000  # characters
_TEXT_KEYS = ("page_content", "content", "text", "snippet", "body", "raw_content", "markdown", "summary")
_SOURCE_KEYS = ("source", "url", "link", "href", "uri")


class UnreadableError(ValueError):
    """A result is too deep or too large to be searched."""


def documents_in(value: Any, *, objects_only: bool = False) -> list[Document]:
    """Return every document in a value, in order; the same one counts once.

    With `objects_only`, dicts and content blocks are left out, whose number whoever writes a page of JSON can choose.
    """
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, Document) for item in value):
        return list(value)
    found: dict[str, Document] = {}
    for part in parts_of(value):
        document = None if objects_only and isinstance(part, Mapping) else _document(part)
        if document is not None:
            found.setdefault(repr((document.page_content, document.metadata)), document)
    if len(found) > MOST_DOCUMENTS:
        raise UnreadableError(f"{len(found)} documents in one result; at most {MOST_DOCUMENTS} are read")
    return list(found.values())


def blocks_in(content: Any) -> list[Document]:
    """Return the content blocks of an MCP result as documents, if there are several or one names a resource; else none.

    A text block is a document of its own, named by its place, whatever it says of its source. Blocks that show no text,
    such as images, are left out: one of them must not withhold what the others say.
    """
    if not isinstance(content, list) or (len(content) < 2 and not any(map(_resource, content))):
        return []
    if not all(isinstance(block, str) or (isinstance(block, Mapping) and "type" in block) for block in content):
        return []
    shown = (_document(block) or _text_block(place, block) for place, block in enumerate(content, 1))
    return [document for document in shown if document is not None]


def _text_block(place: int, block: Any) -> Document | None:
    if isinstance(block, Mapping) and block.get("type") == "file" and isinstance(block.get("url"), str):
        return Document(block["url"], metadata={"source": block["url"]})  # a `resource_link`, as langchain.mcp shows it
    text = _block_text(block)
    return None if text is None else Document(text, metadata={"source": f"block {place} of the result"})


def _resource(block: Any) -> Document | None:
    """Return a `resource_link` of MCP, or an embedded resource with text, as a document; None for anything else."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    inner = block.get("resource") if kind == "resource" else block
    if kind not in ("resource", "resource_link") or not isinstance(inner, Mapping):
        return None
    texts = [inner[key] for key in ("title", "name", "description", "text") if isinstance(inner.get(key), str)]
    uri = inner.get("uri") or inner.get("url")
    return Document("\n".join(dict.fromkeys(texts)), metadata={} if uri is None else {"source": str(uri)})


def records_in(value: Any, *, sourced: bool = False) -> list[Document]:
    """Return the rows of a result list, such as `{"url": ..., "content": ...}`, or only those with a source."""
    found = [_record(part) for part in parts_of(value) if isinstance(part, Mapping)]
    return [record for record in found if record is not None and (record.metadata or not sourced)]


def parsed_texts(value: Any) -> list[Any]:
    """Return the contents of the JSON texts in a value."""
    return [parsed for text in parts_of(value) if isinstance(text, str) and (parsed := _parsed(text)) is not None]


def text_of(content: Any) -> str | None:
    """Return a message's content as one text; None if it holds more than text, or has no known form."""
    if isinstance(content, str):
        return content
    texts = [_block_text(block) for block in content] if isinstance(content, list) else [None]
    return None if None in texts else "\n\n".join(map(str, texts))


def parts_of(value: Any) -> Iterator[Any]:
    """Yield the value and everything in it, down to documents; UnreadableError if it is too deep or too large."""
    waiting, seen, looked = [(value, 0)], dict[int, Any](), 0  # ids are only good as long as their objects live
    while waiting:
        part, depth = waiting.pop()
        looked += 1
        if depth > _DEEPEST or looked > _MOST_PARTS:
            raise UnreadableError("the result is too deep or too large to be looked through")
        inner = [] if isinstance(part, str) else _inside(part)
        if inner and id(part) in seen:
            continue
        seen[id(part)] = part
        yield part
        if _document(part) is None:
            waiting.extend((item, depth + 1) for item in reversed(inner))


def _inside(part: Any) -> list[Any]:
    if isinstance(part, Mapping):
        return list(part.values())
    if isinstance(part, (Sequence, Set, ValuesView)):
        return [] if isinstance(part, (bytes, bytearray, range, memoryview)) else list(part)
    if isinstance(part, BaseMessage):
        return [part.content, getattr(part, "artifact", None)]
    if isinstance(part, (type, ModuleType)) or callable(part):
        return []
    if isinstance(part, BaseModel) or not is_dataclass(part):
        return list(getattr(part, "__dict__", {}).values())
    return [getattr(part, field.name, None) for field in fields(part)]


def _parsed(text: str) -> Any:
    """Return the content of a JSON text; None unless it is an object or a list."""
    if len(text) > _LONGEST_JSON or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") in ("text", "output_text") else None
    return text if isinstance(text, str) else None


def _document(part: Any) -> Document | None:
    """Return the document in a part: a `Document`, one as a dict, or a content block; None for anything else."""
    if isinstance(part, Document):
        return part
    if not isinstance(part, Mapping):
        return None
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
    content = next((body[key] for key in ("content", "text", "data") if body.get(key) is not None), None)
    text = None if body.get("type") in ("base64", "url", "file") else text_of(content)
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
