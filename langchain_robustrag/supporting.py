"""The documents that an answer rests on."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from robustrag_integrations.answer import as_answer


def supporting_documents(robustness: object, documents: Sequence[Document]) -> list[Document]:
    """The documents whose groups support the answer, in rank order; none for an abstention.

    Args:
        robustness: the `RobustAnswer`, or its `to_dict()`.
        documents: those that the answer was made from, in the same order.

    Raises:
        ValueError: these are not the documents of this answer, or it is not a report.

    Examples:
        ```python
        result = rag.invoke({"input": "Who won?"})
        supporting_documents(result["robustness"], result["context"])
        ```
    """
    return as_answer(robustness).supporting(documents)
