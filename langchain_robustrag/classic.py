"""An adapter for the chain classes of `langchain-classic`, such as `RetrievalQA`."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from pydantic import ConfigDict

from langchain_robustrag.chain import create_reporting_chain
from langchain_robustrag.language_models import AnyModel
from langchain_robustrag.runnable import RobustDocuments
from robustrag_integrations.answers.answer import RobustAnswer

try:
    from langchain_classic.chains.combine_documents.base import BaseCombineDocumentsChain
except ImportError as error:
    raise ImportError(
        "RobustDocumentsChain needs langchain-classic: pip install 'robustrag-integrations[langchain-classic]'"
    ) from error


class RobustDocumentsChain(BaseCombineDocumentsChain):
    """`create_robust_documents_chain` as a `BaseCombineDocumentsChain`: documents in, `output_text` and report out.

    `RetrievalQA` and its like keep the text alone; the report goes to callbacks, as the event `robustrag_report`.

    Examples:
        ```python
        combine = RobustDocumentsChain.from_llm(llm, group_by="source")
        qa = RetrievalQA(combine_documents_chain=combine, retriever=retriever)
        ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    documents_chain: RobustDocuments

    @classmethod
    def from_llm(
        cls, llm: AnyModel, prompt: BasePromptTemplate[Any] | None = None, **options: Any
    ) -> RobustDocumentsChain:
        """Make the chain; see `create_robust_documents_chain` for the arguments."""
        return cls(documents_chain=create_reporting_chain(llm, prompt, options))

    def combine_docs(
        self, docs: list[Document], callbacks: Callbacks = None, **kwargs: Any
    ) -> tuple[str, dict[str, RobustAnswer]]:
        """Return the answer, and the report under `robustness`; `kwargs` are the prompt's other inputs."""
        answered = self.documents_chain.invoke(self._inputs(docs, kwargs), {"callbacks": callbacks})
        return answered["answer"], {"robustness": answered["robustness"]}

    async def acombine_docs(
        self, docs: list[Document], callbacks: Callbacks = None, **kwargs: Any
    ) -> tuple[str, dict[str, RobustAnswer]]:
        """`combine_docs` without blocking the event loop."""
        answered = await self.documents_chain.ainvoke(self._inputs(docs, kwargs), {"callbacks": callbacks})
        return answered["answer"], {"robustness": answered["robustness"]}

    def _inputs(self, docs: list[Document], others: dict[str, Any]) -> dict[str, Any]:
        return {**others, self.documents_chain.document_variable_name: docs}
