"""The nodes that an answer rests on."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from robustrag_integrations.answer import as_answer


def supporting_nodes(robustness: object, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """The nodes whose groups support the answer, in rank order; none for an abstention.

    Args:
        robustness: the `RobustAnswer`, or its `to_dict()`: `response.metadata["robustrag"]`.
        nodes: those that the answer was made from, in the same order: `response.source_nodes`.

    Raises:
        ValueError: these are not the nodes of this answer, or it is not a report.
    """
    return as_answer(robustness).supporting(nodes)
