"""With the defaults, one author does not get several votes without the answer saying so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llamaindex_robustrag import RobustRAGQueryEngine, RobustRAGSynthesizer, VoteRules
from robustrag_integrations.errors import TooFewVotesError
from tests.llamaindex.fakes import EVIL, QUESTION, TRUE, FactReader, index_of


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


@pytest.mark.parametrize("key", ["file_path", "file_name", "URL", "url", "source"])
def test_eight_pages_of_one_planted_file_have_one_vote(key: str) -> None:
    pages = [node(f"{EVIL} {i}", f"page-{i}", **{key: "planted.pdf"}, page_label=str(i)) for i in range(8)]
    found = report([*pages, *honest(4)])
    assert found["text"] == "Paris"
    assert [len(g["passage_ids"]) for g in found["groups"]] == [8, 1, 1, 1, 1]


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


def test_pages_without_a_file_share_one_vote_beside_named_ones() -> None:
    found = report([*(node(f"{EVIL} {i}", f"page-{i}", page_label=str(i)) for i in range(8)), *honest(3)])
    assert (found["text"], len(found["groups"])) == ("Paris", 4)


def test_an_author_chooses_no_weight_beside_the_readers_own_path() -> None:
    planted = node(EVIL, "d", file_path="/uploads/evil.pdf", source="/data/0.txt", url="/data/0.txt")
    found = report([planted, *honest(3)], votes=VoteRules(weights={"/data/0.txt": 20}))
    assert sorted(g["votes"] for g in found["groups"]) == [1, 1, 1, 20]
    assert found["text"] == "Paris"
    assert any("/uploads/evil.pdf" in w and "name different origins" in w for w in found["warnings"])


def test_files_with_the_same_content_are_copies_whatever_their_names() -> None:
    copies = [NodeWithScore(node=TextNode(text=EVIL, metadata={"file_name": f"c{n}.txt"})) for n in range(4)]
    found = report([*copies, *honest(2)], votes=VoteRules(copies="one_vote"))
    assert [g["status"] for g in found["groups"]].count("copy") == 3


def test_one_document_that_fills_the_retrieval_is_said_to_decide_alone() -> None:
    flood = [node(f"{EVIL} {i}", "one", file_path="long.pdf") for i in range(10)]
    found = report(flood)
    assert found["radius"] == 0
    assert any("from one group (long.pdf), which decides alone" in w for w in found["warnings"])
    assert report(flood, votes=VoteRules(min_groups=2))["abstained"]
    with pytest.raises(TooFewVotesError):
        report(flood, votes=VoteRules(min_groups=2, below="raise"))


def test_spellings_of_one_address_have_one_vote_or_are_warned_of() -> None:
    urls = ["x.com/a?u=1", "x.com/a#2", "http://x.com/a"]
    found = report([*(node(f"{EVIL} {u}", u, url=u) for u in urls), *honest(3)])
    assert [len(g["passage_ids"]) for g in found["groups"]] == [1, 2, 1, 1, 1]
    assert any("are the page x.com/a with other queries" in w for w in found["warnings"])


def test_what_is_defended_by_default_answers_so() -> None:
    engine = RobustRAGQueryEngine.from_args(index_of([f"{TRUE} {i}" for i in range(4)]).as_retriever(), FactReader())
    assert engine._response_synthesizer.group_by == "origin"


def test_weights_and_copies_are_taken() -> None:
    flood = [node(EVIL, f"m{i}", url=f"http://mirror{i}.example") for i in range(5)]
    assert report([*flood, *honest(3)], votes=VoteRules(copies="one_vote"))["text"] == "Paris"
    trusted = report([*flood[:1], *honest(2)], votes=VoteRules(weights={"http://mirror0.example/": 0}))
    assert (trusted["text"], trusted["radius_unit"], len(trusted["groups"])) == ("Paris", "votes", 2)


def test_three_old_documents_do_not_beat_the_newest_one() -> None:
    days = ("2019-03-01", "2020-03-01", "2021-03-01")
    nodes = [node(f"{EVIL} {day}", day, file_path=f"{day}.md", date=day) for day in days]
    nodes.append(node(TRUE, "new", file_path="new.md", date="2024-06-01"))
    tiers = {"new.md": "in force"}
    assert report(nodes)["text"] != "Paris"
    found = report(nodes, votes=VoteRules(weights="newest", tiers=tiers, min_radius={"other": 3}))
    assert (found["text"], found["radius_by_tier"]) == ("Paris", {"in force": 0, "other": 3})
    assert [d["superseded_by"] for d in found["dissent"]] == ["2024-06-01"]
    assert report(nodes, votes=VoteRules(tiers=tiers, min_radius={"other": 3}))["abstained"]
