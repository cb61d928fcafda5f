"""LlamaIndex nodes with any text, any metadata and any relationship."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from pydantic import BaseModel

from llamaindex_robustrag import Abstained
from llamaindex_robustrag.grouping import group_nodes
from llamaindex_robustrag.reports import structured
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.grouping.passages import is_blank
from tests.fuzz.hostile import json_line, name, text, value
from tests.fuzz.source import Source, Target


def _node(source: Source) -> NodeWithScore:
    metadata = {name(source): value(source, 1) for _ in range(source.below(3))}
    node = TextNode(text=text(source, 5), metadata=metadata, excluded_llm_metadata_keys=[name(source)])
    related = RelatedNodeInfo(node_id=source.pick(("doc", name(source), "")))
    kind = source.below(4)
    if kind == 0:
        node.relationships = {NodeRelationship.SOURCE: related}
    elif kind == 1:
        node.relationships = {NodeRelationship.SOURCE: [related]}
    return NodeWithScore(node=node, score=1.0)


def nodes(source: Source) -> None:
    """Every node ends up in one source with its text; whatever it says about itself gains no votes."""
    given = [_node(source) for _ in range(source.below(5))]
    by: Any = source.pick(
        ("origin", "passage", "site_name", lambda p: p.metadata["site"], lambda p: p.metadata.get("site"))
    )
    try:
        grouped = group_nodes(given, by)
    except ValueError as error:  # an entry that no passage has, or a function that fails on all of them
        if by == "site_name" and "no passage has an entry of that name" in str(error):
            return
        if callable(by) and given and "raises for every passage" in str(error):
            return
        raise
    held = [p for source in grouped for p in source.passages]
    assert len(held) == len(given)
    for passage in held:
        assert is_blank(passage.text) or any(passage.text == n.node.get_content() for n in given)


class _Answer(BaseModel):
    text: str
    score: int = 0


def structures(source: Source) -> None:
    """A structured answer is of its class, an abstention, or is taken for words."""
    said = json_line(source, {"text": "Paris", "score": 3})
    answer = RobustAnswer(text=said, radius=0, abstained=source.below(4) == 0, query="q", method="keyword")
    found = structured(answer, _Answer)
    assert isinstance(found, Abstained) if answer.abstained else found is None or isinstance(found, _Answer)


TARGETS = (Target("llamaindex-nodes", nodes, 2), Target("llamaindex-structures", structures, 4))
