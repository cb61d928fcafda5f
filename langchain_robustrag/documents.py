"""Puts documents into isolated sources. No metadata, present or missing, can break the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompts import BasePromptTemplate, PromptTemplate

from langchain_robustrag.retrieved import UnreadableError, documents_in
from robustrag_integrations.defenses.base import shelf_of
from robustrag_integrations.grouping.passages import (
    GroupBy,
    Passage,
    Source,
    grouping_of,
    is_blank,
    passage_keys,
)
from robustrag_integrations.grouping.votes import VoteRules

DEFAULT_DOCUMENT_PROMPT = PromptTemplate.from_template("{page_content}")


def grouped(
    documents: Sequence[Document],
    rules: VoteRules,
    document_prompt: BasePromptTemplate[Any] = DEFAULT_DOCUMENT_PROMPT,
    separator: str = "\n\n",
) -> tuple[Source, ...]:
    """Put documents, best first, into isolated sources. No text is split: the author of a part could forge votes."""
    sources = rules.isolate(_passage(document, document_prompt) for document in checked_documents(documents))
    return tuple(replace(source, separator=separator) for source in sources)


def shelf(
    documents: Sequence[Document],
    document_prompt: BasePromptTemplate[Any] = DEFAULT_DOCUMENT_PROMPT,
    separator: str = "\n\n",
) -> tuple[Source, ...]:
    """Put trusted documents into one source, formatted as `create_stuff_documents_chain` does; none for no document."""
    passages = [_passage(document, document_prompt) for document in checked_documents(documents, "trusted documents")]
    return tuple(replace(source, separator=separator) for source in shelf_of(passages))


def document_places(documents: Sequence[Document], group_by: GroupBy) -> tuple[int, ...]:
    """Return the source number of each document; documents of one origin share one."""
    passages = [_passage(document, DEFAULT_DOCUMENT_PROMPT) for document in documents]
    return passage_keys(passages, grouping_of(1, group_by)).places


def _passage(document: Document, document_prompt: BasePromptTemplate[Any]) -> Passage:
    text = _formatted(document, document_prompt)
    metadata = dict(document.metadata or {})
    source, content = metadata.get("source"), document.page_content
    return Passage(text, id=document.id, origin=source, metadata=metadata, content=content)


def checked_documents(documents: Any, name: str = "documents") -> list[Document]:
    """Return the documents as a new list; TypeError if it is something else."""
    if isinstance(documents, (str, bytes, Document)) or not hasattr(documents, "__iter__"):
        fix = "give what the retriever gave"
        if isinstance(documents, str):
            fix = 'drop format_docs: {"context": retriever, ...} gives the documents themselves; text is never split'
        raise TypeError(f"{name} must be a list of Document, got {type(documents).__name__}; {fix}")
    items = list(documents)
    for place, item in enumerate(items):
        if not isinstance(item, Document):
            fix = "make it Document(text, metadata={'source': ...}), without a score"
            raise TypeError(f"{name}[{place}] must be a Document, got {type(item).__name__}; {fix}")
    return items


def _formatted(document: Document, template: BasePromptTemplate[Any]) -> str:
    """Format a document; missing metadata is left blank. What cannot be formatted is shown as the bare content."""
    if "page_content" in template.input_variables and is_blank(document.page_content):
        return ""
    known = {**(document.metadata or {}), "page_content": document.page_content}
    try:
        return str(template.format(**{name: known.get(name, "") for name in template.input_variables}))
    except Exception:
        return document.page_content


def unisolated_documents(inputs: Mapping[str, Any], name: str) -> list[str]:
    """Return warnings for documents in the inputs that prompts show, but for the isolated one of this name."""
    return [
        f"the prompt's input {other!r} holds documents, which are not isolated: every source is shown them, and the "
        f"radius does not count what they say; give documents as {name!r} alone"
        for other in sorted(inputs)
        if holds_documents(inputs[other])
    ]


def holds_documents(value: Any) -> bool:
    """True if a value holds a document at any depth, or is too deep to search; of messages the content counts."""
    items = value if isinstance(value, (list, tuple)) else [value]
    try:
        return bool(documents_in([item.content if isinstance(item, BaseMessage) else item for item in items]))
    except UnreadableError:
        return True
