"""The audit at run time: stock wirings show several sources in one prompt, robust ones never do."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_robustrag import (
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    UndefendedError,
    audit_isolation,
)
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, FactReader, index_of, truthful

INDEX = index_of([*truthful(), EVIL])
LLM = FactReader()
CHAT = AsyncFactReader()
K = {"similarity_top_k": 7}


ROBUST = RobustRAGQueryEngine.from_args(INDEX.as_retriever(**K), llm=CHAT)


def test_the_path_leads_to_the_prompt() -> None:
    with audit_isolation() as audit:
        INDEX.as_query_engine(llm=LLM, **K).query(QUESTION)
    (finding,) = audit.findings
    assert finding.path.startswith("RetrieverQueryEngine.query > ")
    assert finding.path.endswith("FactReader.complete")
    assert finding.component == "FactReader"
    assert "RobustRAGQueryEngine" in finding.fix
    chat = RobustContextChatEngine.from_defaults(retriever=INDEX.as_retriever(**K), llm=CHAT)
    with audit_isolation("raise"), pytest.raises(UndefendedError, match="besides what was isolated"):
        chat.chat(QUESTION, chat_history=[ChatMessage(content="\n\n".join(truthful()))])


def test_an_llm_whose_class_is_made_later_is_seen_and_stopped(clean: VectorStoreIndex) -> None:
    init = FactReader.__init__
    with audit_isolation("raise") as audit:

        class Later(FactReader):
            def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
                return super().complete(prompt)

        llm = Later()
        audit.learn(n.node for n in clean.as_retriever(similarity_top_k=6).retrieve(QUESTION))
        with pytest.raises(UndefendedError):
            llm.complete(" ".join(truthful()))
        assert llm.seen == []
    llm.complete(" ".join(truthful()))
    assert FactReader.__init__ is init


def test_nothing_is_kept_of_calls_that_ended() -> None:
    with audit_isolation() as audit:
        ROBUST.query(QUESTION)
        with pytest.raises(ConnectionError):
            INDEX.as_query_engine(llm=FactReader(fails_on="France"), **K).query(QUESTION)
    assert not audit._listener._runs._open
