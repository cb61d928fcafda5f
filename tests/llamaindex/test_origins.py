"""With the defaults, one author does not get several votes without the answer saying so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core import SimpleDirectoryReader
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llamaindex_robustrag import RobustRAGSynthesizer, VoteRules
from tests.llamaindex.fakes import EVIL, QUESTION, TRUE, FactReader


def report(nodes: list[NodeWithScore], **options: Any) -> dict[str, Any]:
    return RobustRAGSynthesizer(FactReader(), **options).synthesize(QUESTION, nodes).metadata["robustrag"]


def node(text: str, document: str, **metadata: Any) -> NodeWithScore:
    """A node of a document of its own, as readers that make a document per page give them."""
    keys = list(metadata)
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    made = TextNode(text=text, metadata=metadata, relationships=source, excluded_llm_metadata_keys=keys)
    return NodeWithScore(node=made, score=1.0)


def honest(count: int) -> list[NodeWithScore]:
    return [node(f"{TRUE} {i}", f"d{i}", file_path=f"/data/{i}.txt") for i in range(count)]


def test_the_page_number_that_a_reader_calls_source_is_no_origin() -> None:
    pages = [node(f"{EVIL} {i}", f"page-{i}", file_path="/planted.pdf", source=str(i)) for i in range(8)]
    assert report([*pages, *honest(4)])["text"] == "Paris"


def test_files_that_the_directory_reader_cuts_into_pages_have_one_vote(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(f"{TRUE} {name}")
    documents = SimpleDirectoryReader(str(tmp_path)).load_data()
    planted = [
        Document(text=f"{EVIL} {i}", metadata={"file_path": str(tmp_path / "evil.pdf"), "page_label": str(i)})
        for i in range(8)
    ]
    nodes = [node(d.text, d.doc_id, file_path=d.metadata["file_path"]) for d in (*planted, *documents)]
    found = report(nodes)
    assert found["text"] == "Paris"
    assert len(found["groups"]) == 4


def test_pages_that_document_ids_alone_tell_apart_are_warned_of() -> None:
    found = report([node(f"{EVIL} {i}", f"page-{i}") for i in range(8)])
    assert any("8 groups are told apart by document ids alone" in w for w in found["warnings"])


def test_files_with_the_same_content_are_copies_whatever_their_names() -> None:
    copies = [NodeWithScore(node=TextNode(text=EVIL, metadata={"file_name": f"c{n}.txt"})) for n in range(4)]
    found = report([*copies, *honest(2)], votes=VoteRules(copies="one_vote"))
    assert [g["status"] for g in found["groups"]].count("copy") == 3
