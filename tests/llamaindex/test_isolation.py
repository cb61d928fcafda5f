"""What one prompt holds: one source document, never more, whatever splits, packs or cuts nodes on the way."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceWindowNodeParser, TokenTextSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from llamaindex_robustrag.grouping import group_nodes, source_of
from tests.helpers.hostile_keys import HOSTILE_KEYS
from tests.llamaindex.fakes import EVIL, QUESTION, FactReader, WordEmbedding, nodes_of, truthful


def warnings_of(nodes: list[NodeWithScore], **arguments: object) -> list[str]:
    synthesizer = RobustRAGSynthesizer(llm=FactReader(), **arguments)
    return synthesizer.synthesize(QUESTION, nodes).metadata["robustrag"]["warnings"]


@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "simple_summarize"])
def test_trap_stock_synthesizers_show_the_model_planted_and_honest_texts_together(mode: str, llm: FactReader) -> None:
    get_response_synthesizer(llm=llm, response_mode=mode).synthesize(QUESTION, nodes_of([*truthful(), EVIL]))
    assert any(EVIL in prompt and "number 0" in prompt for prompt in llm.seen)


def test_no_prompt_ever_holds_two_documents(llm: FactReader) -> None:
    texts = [*truthful(), EVIL]
    template = PromptTemplate("{context_str} {query_str}")
    RobustRAGSynthesizer(llm=llm, text_qa_template=template).synthesize(QUESTION, nodes_of(texts))
    assert [sum(text in prompt for text in texts) for prompt in llm.seen] == [1] * len(texts) + [0]


def test_trap_accumulate_gives_one_long_document_many_votes_and_we_give_it_one(llm: FactReader) -> None:
    nodes = nodes_of([*truthful(), f"{EVIL} " * 2000])
    stock = FactReader()
    get_response_synthesizer(llm=stock, response_mode="accumulate").synthesize(QUESTION, nodes)
    assert sum(EVIL in prompt for prompt in stock.seen) > 1
    response = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes)
    assert sum(EVIL in prompt for prompt in llm.seen) == 1
    assert str(response) == "Paris"
    report = response.metadata["robustrag"]
    assert [g["truncated"] for g in report["groups"]] == [False] * 6 + [True]
    assert any("1 of 7 groups were cut" in w for w in report["warnings"])


def test_a_group_is_cut_at_its_end_and_the_others_are_left_alone(llm: FactReader) -> None:
    helper = PromptHelper(context_window=400, num_output=50)
    texts = [*truthful(2), "start " + "filler " * 3000 + "the end"]
    RobustRAGSynthesizer(llm=llm, prompt_helper=helper, calls=CallOptions(num_workers=1)).synthesize(
        QUESTION, nodes_of(texts)
    )
    short, same, long = llm.seen
    assert texts[0] in short
    assert texts[1] in same
    assert "start filler" in long
    assert "the end" not in long
    assert QUESTION in long


@pytest.mark.parametrize("text", ["x" * 300_000, "🦉" * 20_000, " \n" * 50_000 + "a", "{query_str}{context}" * 5_000])
def test_hostile_lengths_and_shapes_fit_the_window(text: str, llm: FactReader) -> None:
    nodes = nodes_of([*truthful(3), text])
    assert str(RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes)) == "Paris"
    assert max(len(prompt) for prompt in llm.seen) < 200_000


def test_a_question_that_leaves_no_room_is_an_error_that_says_so(llm: FactReader) -> None:
    with pytest.raises(ValueError, match="leave no room for passages"):
        RobustRAGSynthesizer(llm=llm).synthesize("why " * 5000, nodes_of(truthful(1)))


def test_braces_and_templates_in_documents_are_plain_text(llm: FactReader) -> None:
    text = "{query_str} {{context_str}} {% raw %} %s {0} </s> \x00"
    RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes_of([text, *truthful(3)]))
    assert any(text in prompt for prompt in llm.seen)


def test_the_nodes_of_one_document_share_one_group_wherever_they_rank(llm: FactReader) -> None:
    nodes = nodes_of([EVIL, *truthful(4), EVIL, EVIL], ["evil", "a", "b", "c", "d", "evil", "evil"])
    response = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes)
    report = response.metadata["robustrag"]
    assert report["groups"][0]["passage_ids"] == ["node-0", "node-5", "node-6"]
    assert [g["origins"] for g in report["groups"]] == [["evil"], ["a"], ["b"], ["c"], ["d"]]
    assert str(response) == "Paris"
    ids, dissent = report["warnings"]
    assert ids.startswith("5 groups are told apart by document ids alone")
    assert dissent.startswith("1 of 5 answering sources says otherwise: 'Berlin' (evil)")


def test_nodes_without_a_source_share_a_group_when_others_have_one() -> None:
    nodes = nodes_of(["a", "b", "c", "d"], ["x", None, "y", None])
    found = group_nodes(nodes, "origin")
    assert [[p.id for p in g.passages] for g in found.groups] == [["node-0"], ["node-1", "node-3"], ["node-2"]]
    assert "2 of 4 passages have no origin; they share one group" in warnings_of(nodes)


def test_nodes_are_groups_of_their_own_with_a_warning_when_none_has_a_source() -> None:
    nodes = nodes_of(truthful(4), [None] * 4)
    assert [[p.id for p in g.passages] for g in group_nodes(nodes, "origin").groups] == [
        ["node-0"], ["node-1"], ["node-2"], ["node-3"]
    ]  # fmt: skip
    assert any("none of the 4 passages names its origin" in w for w in warnings_of(nodes))


def test_the_same_node_retrieved_twice_has_one_vote() -> None:
    nodes = nodes_of(["a", "b"], [None, None])
    assert len(group_nodes([*nodes, nodes[0]], "origin").groups) == 2
    assert len(group_nodes([*nodes, nodes[0]], "passage").groups) == 2


def test_group_by_passage_makes_every_node_a_group() -> None:
    assert len(group_nodes(nodes_of(["a", "b", "c"], ["x", "x", "x"]), "passage").groups) == 3


def test_a_function_groups_and_what_it_fails_on_shares_a_group() -> None:
    nodes = nodes_of(["a", "b", "c", "d", "e"])
    for node, site in zip(nodes, ["x.org", "y.org", "x.org"], strict=False):
        node.node.metadata["site"] = site
    found = group_nodes(nodes, lambda n: n.node.metadata["site"])
    assert [[p.id for p in g.passages] for g in found.groups] == [
        ["node-0", "node-2"], ["node-1"], ["node-3", "node-4"]
    ]  # fmt: skip
    told = "2 of 5 passages have no group_by key (2 KeyError); they share one group"
    assert told in warnings_of(nodes, group_by=lambda n: n.node.metadata["site"])
    assert len(group_nodes(nodes, lambda n: [n.node.text]).groups) == 1  # keys that cannot be compared


@pytest.mark.parametrize("make", HOSTILE_KEYS.values(), ids=HOSTILE_KEYS)
def test_keys_made_to_be_unequal_win_no_votes(make: Any, llm: FactReader) -> None:
    nodes = nodes_of([*truthful(4), *[EVIL] * 5])
    keys = {n.node.node_id: f"site {i}" if i < 4 else make() for i, n in enumerate(nodes)}
    synthesizer = RobustRAGSynthesizer(llm=llm, group_by=lambda n: keys[n.node.node_id])
    report = synthesizer.synthesize(QUESTION, nodes).metadata["robustrag"]
    assert report["text"] == "Paris"
    assert [len(g["passage_ids"]) for g in report["groups"]] == [1, 1, 1, 1, 5]
    assert any("5 of 9 passages have no group_by key" in w for w in report["warnings"])


def test_grouping_by_anything_else_is_refused(llm: FactReader) -> None:
    with pytest.raises(ValueError, match="use 'origin', 'site', 'passage', the name of a metadata entry"):
        RobustRAGSynthesizer(llm=llm, group_by=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parser",
    [
        TokenTextSplitter(chunk_size=32, chunk_overlap=0),
        HierarchicalNodeParser.from_defaults(
            node_parser_ids=["large", "small"],
            node_parser_map={
                "large": TokenTextSplitter(chunk_size=64, chunk_overlap=0),
                "small": TokenTextSplitter(chunk_size=16, chunk_overlap=0),
            },
        ),
        SentenceWindowNodeParser.from_defaults(sentence_splitter=lambda text: text.split(". ")),
    ],
    ids=lambda p: type(p).__name__,
)
def test_node_parsers_name_the_document_as_source(parser: object) -> None:
    document = Document(text="One fact stands here. " * 30, doc_id="the-document")
    assert {source_of(node) for node in parser.get_nodes_from_documents([document])} == {"the-document"}


def test_trap_citation_engine_splits_a_document_which_still_has_one_vote(llm: FactReader) -> None:
    texts = [*truthful(4), f"{EVIL} " * 60]
    documents = [Document(text=text, doc_id=f"doc-{i}") for i, text in enumerate(texts)]
    index = VectorStoreIndex.from_documents(documents, embed_model=WordEmbedding())
    engine = CitationQueryEngine.from_args(
        index,
        llm=llm,
        response_synthesizer=RobustRAGSynthesizer(llm=llm),
        text_splitter=TokenTextSplitter(chunk_size=64, chunk_overlap=0),
        similarity_top_k=5,
    )
    response = engine.query(QUESTION)
    assert len(response.source_nodes) > 5
    assert len(response.metadata["robustrag"]["groups"]) == 5
    assert str(response) == "Paris"


def test_the_order_of_documents_changes_nothing() -> None:
    nodes = nodes_of([*truthful(), EVIL])
    reports = []
    for given in (nodes, nodes[::-1], [*nodes[3:], *nodes[:3]]):
        report = RobustRAGSynthesizer(llm=FactReader()).synthesize(QUESTION, given).metadata["robustrag"]
        reports.append((report["text"], report["radius"], report["evidence"]))
    assert reports[0] == reports[1] == reports[2]


def test_what_one_document_is_asked_depends_on_no_other() -> None:
    prompts = []
    for other in ("short", "long " * 5000, EVIL):
        llm = FactReader()
        RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes_of([truthful(1)[0], other]))
        prompts.append(next(p for p in llm.seen if "Source number 0" in p))
    assert prompts[0] == prompts[1] == prompts[2]
