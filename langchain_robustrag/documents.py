"""Documents to isolated groups. Nothing in a document's metadata, present or missing, can break the call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate, PromptTemplate

from robustrag_integrations.passages import GroupBy, Passage, PassageGroup, as_passages, isolate

DEFAULT_DOCUMENT_PROMPT = PromptTemplate.from_template("{page_content}")


@dataclass(frozen=True)
class Isolation:
    """How documents become groups.

    Attributes:
        group_size: omega, adjacent documents per group.
        group_by: `"source"` (`metadata["source"]`) or a function from a `Passage` to a key, in place of `group_size`.
        document_prompt: how a document is shown; fields are `page_content` and metadata keys.
        separator: what stands between two documents of one group.
    """

    group_size: int = 1
    group_by: GroupBy | None = None
    document_prompt: BasePromptTemplate[Any] = field(default_factory=lambda: DEFAULT_DOCUMENT_PROMPT)
    separator: str = "\n\n"

    def groups(self, documents: Sequence[Document]) -> tuple[tuple[PassageGroup, ...], list[str]]:
        """The groups, and what a reader of the answer should know about how they came about.

        Raises:
            TypeError: not a list of documents. A text is never cut into documents: whoever wrote part of it could
                forge further documents, and with them votes.
        """
        passages = as_passages(self._passage(d) for d in checked_documents(documents))
        if self.group_by is None or self.group_by == "source":
            return isolate(passages, self.group_size, by=self.group_by), []
        keys = [_key_of(passage, self.group_by) for passage in passages]
        lookup = {id(passage): key for passage, (key, _) in zip(passages, keys, strict=True)}
        failed = sum(bad for _, bad in keys)
        warnings = [f"group_by gave no usable key for {failed} of {len(keys)} documents; they share one group"]
        return isolate(passages, by=lambda passage: lookup[id(passage)]), warnings if failed else []

    def text_of(self, group: PassageGroup) -> str:
        """What one isolated prompt shows."""
        return self.separator.join(p.text for p in group.passages)

    def _passage(self, document: Document) -> Passage:
        text = _formatted(document, self.document_prompt)
        metadata = dict(document.metadata or {})
        name = document.id if isinstance(document.id, str) and document.id else ""
        return Passage(text, id=name or None, source=_source(metadata), metadata=metadata)


def checked_documents(documents: Any) -> list[Document]:
    """The documents as a list of their own.

    Raises:
        TypeError: it is something else; the message says what.
    """
    if isinstance(documents, (str, bytes, Document)) or not hasattr(documents, "__iter__"):
        raise TypeError(f"documents must be a list of Document, got {type(documents).__name__}; text is never split")
    items = list(documents)
    for place, item in enumerate(items):
        if not isinstance(item, Document):
            raise TypeError(f"documents[{place}] must be a Document, got {type(item).__name__}")
    return items


def is_documents(value: Any) -> bool:
    """Whether the value is a list of documents, with at least one in it."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(v, Document) for v in value)


def _formatted(document: Document, template: BasePromptTemplate[Any]) -> str:
    """The document as the template shows it; metadata that is missing is left blank.

    Whoever publishes a document chooses its metadata. What the template cannot format falls back on the bare content.
    """
    known = {**(document.metadata or {}), "page_content": document.page_content}
    values = {name: known.get(name, "") for name in template.input_variables}
    try:
        return str(template.format(**values))
    except Exception:
        return document.page_content


def _source(metadata: dict[Any, Any]) -> str | None:
    """`metadata["source"]` as a name; None for anything that is not one."""
    value = metadata.get("source")
    if isinstance(value, (str, int, PurePath)) and not isinstance(value, bool):
        return str(value) or None
    return None


def _key_of(passage: Passage, group_by: Any) -> tuple[Hashable, bool]:
    """A passage's key, and whether the function failed on it: its metadata may be anything."""
    try:
        key: Hashable = group_by(passage)
        hash(key)
    except Exception:
        return None, True
    return key, False
