"""LangChain documents with any text and any metadata."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

from langchain_robustrag.documents import DEFAULT_DOCUMENT_PROMPT, grouped
from langchain_robustrag.prompts import as_langchain, as_text, located
from robustrag_integrations.grouping.passages import is_blank
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.text.prompts import TASKS, prompts_for
from tests.fuzz.hostile import name, text, value
from tests.fuzz.source import Source, Target

_SHOWN = PromptTemplate.from_template("{title}: {page_content} ({source})")
_CHAT = ChatPromptTemplate.from_messages([("system", "Context: {context}"), ("human", "{input}")])


def _document(source: Source) -> Document:
    metadata: dict[Any, Any] = {k: value(source) for k in ("source", "title", "page_content") if source.chance(2)}
    if source.chance(3):
        metadata[name(source)] = value(source)
    return Document(page_content=text(source, 5), metadata=metadata, id=name(source) if source.chance(2) else None)


def documents(source: Source) -> None:
    """Every document is in exactly one source, its text unchanged; metadata gains no votes and breaks nothing."""
    given = [_document(source) for _ in range(source.below(6))]
    by: Any = source.pick((None, "source", lambda p: p.metadata["title"], lambda p: p.metadata.get("source")))
    for shown in (DEFAULT_DOCUMENT_PROMPT, _SHOWN):
        try:
            sources = grouped(given, VoteRules(group_by=by), shown)
        except ValueError as error:  # an entry that no passage has, or a function that fails on all of them
            if by == "source" and "no passage has an entry of that name" in str(error):
                return
            if callable(by) and given and "raises for every passage" in str(error):
                return
            raise
        held = [p for source in sources for p in source.passages]
        assert len(held) == len(given)
        assert len(sources) <= max(len(given), 0)
        if shown is not _SHOWN:
            assert sorted(p.text for p in held) == sorted(
                "" if is_blank(d.page_content) else d.page_content for d in given
            )
        assert all(source.text == "\n\n".join(p.text for p in source.passages) for source in sources)


def prompts(source: Source) -> None:
    """LangChain's formatting inserts passages, questions and keywords as they are."""
    context, query = text(source, 5), text(source, 3)
    values = {"input": query, "query": query, "choices": name(source), "keywords": text(source, 3), "context": context}
    shown = as_text(_CHAT.format_prompt(**values))
    assert shown == f"Context: {context}\n\n{query}"
    ours = prompts_for(source.pick(TASKS)).isolated
    assert as_text(as_langchain(ours).format_prompt(**values)) == ours.render(**values).text
    prompt = located(_CHAT, values, "context", request="")
    assert prompt.context is not None
    assert prompt.text[slice(*prompt.context)] == context


TARGETS = (Target("langchain-documents", documents, 2), Target("langchain-prompts", prompts, 3))
