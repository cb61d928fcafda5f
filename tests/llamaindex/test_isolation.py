"""What one prompt holds: one document, whatever splits or packs nodes; where nodes come from, and which are shown."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer, VoteRules, robust_answer
from tests.llamaindex.fakes import EVIL, QUESTION, TRUE, AsyncFactReader, FactReader, WordEmbedding, nodes_of, truthful


def test_trap_accumulate_gives_one_long_document_many_votes_and_we_give_it_one(llm: FactReader) -> None:
    nodes = nodes_of([*truthful(), f"{EVIL} " * 2000])
    stock = FactReader()
    get_response_synthesizer(llm=stock, response_mode="accumulate").synthesize(QUESTION, nodes)
    assert sum(EVIL in prompt for prompt in stock.seen) > 1
    response = RobustRAGSynthesizer(llm=llm).synthesize(QUESTION, nodes)
    assert 1 < sum(EVIL in prompt for prompt in llm.seen) <= sum(EVIL in prompt for prompt in stock.seen)
    assert str(response) == "Paris"
    report = response.metadata["robustrag"]
    assert [g["status"] for g in report["sources"]] == ["supports"] * 6 + ["differs"]
    assert report["radius"] == 2


WINDOW = 1000
_DAYS = [f"On day {i} the harvest went on as planned, and the weather was fair." for i in range(200)]


@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
@pytest.mark.parametrize("place", [0, 100, 200])
async def test_a_document_longer_than_the_window_is_read_in_parts_and_has_one_vote(place: int, style: str) -> None:
    stock, llm = AsyncFactReader(window=WINDOW), AsyncFactReader(window=WINDOW)
    nodes = nodes_of([" ".join([*_DAYS[:place], TRUE, *_DAYS[place:]]), TRUE, f"{EVIL} " * 300])
    get_response_synthesizer(stock).synthesize(QUESTION, nodes[:1])
    given: Any = getattr(RobustRAGSynthesizer(llm), style)(QUESTION, nodes)
    answer = robust_answer(await given if style == "asynthesize" else given)
    assert (answer.text, [g.status for g in answer.sources]) == ("Paris", ["supports", "supports", "differs"])
    assert 1 < sum("harvest" in prompt for prompt in llm.seen) <= len(stock.seen)
    assert not any(source.truncated for source in answer.sources)
    assert answer.model_calls == answer.spending.calls == len(llm.seen)
    assert not any("harvest" in prompt and "Berlin" in prompt for prompt in llm.seen)
    read = [" ".join(d for d in _DAYS if d in prompt) for prompt in llm.seen if "harvest" in prompt]
    assert sum(map(len, read)) > 0.9 * len(" ".join(_DAYS))


def test_parts_that_say_different_things_are_put_together_by_one_call_about_them_alone() -> None:
    llm = FactReader(window=WINDOW, script=None)
    days = " ".join(_DAYS)
    nodes = nodes_of([f"{TRUE} {days} The capital of France is Lyon.", TRUE])
    answer = robust_answer(RobustRAGSynthesizer(llm).synthesize(QUESTION, nodes))
    last = llm.seen[-1]
    assert "Paris\n\nLyon" in last
    assert "harvest" not in last
    assert [g.status for g in answer.sources] == ["abstained", "supports"]
    assert answer.model_calls == len(llm.seen)


def test_a_part_that_fails_costs_its_source_and_no_other() -> None:
    llm = FactReader(window=WINDOW, fails_on="On day 150 ")
    nodes = nodes_of([f"{TRUE} {' '.join(_DAYS)}", TRUE, TRUE + " Yes."])
    answer = robust_answer(RobustRAGSynthesizer(llm, calls=CallOptions(attempts=1)).synthesize(QUESTION, nodes))
    assert [g.status for g in answer.sources] == ["failed", "supports", "supports"]


def test_parts_are_not_waited_for_once_the_answer_is_decided() -> None:
    llm = AsyncFactReader(window=WINDOW)
    nodes = nodes_of([*truthful(5), f"{EVIL} {' '.join(_DAYS)}"])
    synthesizer = RobustRAGSynthesizer(llm, votes=VoteRules(stop_when_decided=True), calls=CallOptions(num_workers=1))
    answer = robust_answer(synthesizer.synthesize(QUESTION, nodes))
    assert (answer.text, answer.sources[-1].status) == ("Paris", "not_asked")
    assert answer.model_calls == len(llm.seen) < 8


def test_no_more_parts_are_asked_than_allowed_and_the_rest_is_told(llm: FactReader) -> None:
    calls = CallOptions(max_parts=2)
    nodes = nodes_of([*truthful(6), f"{EVIL} " * 2000])
    report = RobustRAGSynthesizer(llm, calls=calls).synthesize(QUESTION, nodes).metadata["robustrag"]
    assert sum(EVIL in prompt for prompt in llm.seen) == 2
    assert [g["truncated"] for g in report["sources"]] == [False] * 6 + [True]
    assert any("1 of 7 sources were cut" in w for w in report["warnings"])


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
    assert len(response.metadata["robustrag"]["sources"]) == 5
    assert str(response) == "Paris"


@pytest.mark.parametrize("own", [None, "{content}\n(of {metadata_str})"])
def test_metadata_is_read_where_a_template_of_the_users_names_it(own: str | None) -> None:
    llm, more = FactReader(), {} if own is None else {"text_template": own}
    node = TextNode(
        text=TRUE, metadata={"file_path": "wiki/a.md", "team": "red"}, excluded_llm_metadata_keys=["team"], **more
    )
    shelf = [NodeWithScore(node=TextNode(text="Rain.", metadata={"file_path": "manual/b.md"}, **more))]
    RobustRAGSynthesizer(llm).synthesize(QUESTION, [NodeWithScore(node=node)], trusted_nodes=shelf)
    trusted, isolated = llm.seen
    assert "file_path: manual/b.md" in trusted  # as stock shows it
    assert (f"{TRUE}\n(of file_path: wiki/a.md)" in isolated) == (own is not None)
    assert ("wiki" in isolated, "red" in isolated) == (own is not None, False)
