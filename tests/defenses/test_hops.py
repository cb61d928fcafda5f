"""Questions of several look-ups: what goes from hop to hop, when a run ends, and what its radius counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    KeywordAggregation,
    Passage,
    RobustAnswer,
)
from robustrag_integrations.answers.answer import Claim
from robustrag_integrations.defenses.hops import MultiHop, answer_key, as_name
from tests.docs.pages import Page

TEMPLATES = ("Which company makes Tarsk?", "Who founded {1}?")
TOLD = {
    "Which company makes Tarsk?": ["Brezar Works"] * 4 + ["brezar works."],
    "Who founded Brezar Works?": ["Ada Lind"] * 5,
}


def answered(told: Sequence[str], question: str = "q", sources: str = "abcdefgh", **rules: Any) -> RobustAnswer:
    model = CallableModel(lambda prompt: prompt.rsplit("<", 1)[1].split(">")[0])
    passages = [Passage(f"{n} <{text}>", source=s) for n, (text, s) in enumerate(zip(told, sources, strict=False))]
    return ConsensusAggregation(model, **rules).answer(question, passages)


def run(told: dict[str, Sequence[str]], templates: Sequence[str] = TEMPLATES, **rules: Any) -> Any:
    return MultiHop(lambda q: answered(told[q], q, **rules), templates).answer("Who founded the maker of Tarsk?")


def test_the_key_of_an_answer_goes_on_and_the_least_radius_is_told() -> None:
    answer = run({**TOLD, "Who founded Brezar Works?": ["Ada Lind"] * 3})
    assert [(h.question, h.key, h.radius) for h in answer.hops] == [
        ("Which company makes Tarsk?", "brezar works", 2),
        ("Who founded Brezar Works?", None, 1),
    ]
    assert (answer.text, answer.radius, answer.abstained, answer.caveat) == ("Ada Lind", 1, False, None)
    assert "any 1 origin in all hops at once" in answer.explain()


def test_how_an_answer_is_written_does_not_reach_the_next_question() -> None:
    for told in (["Brezar works."] * 5, ["brezar  works,"] * 5, ['"Brezar Works"', "The brezar works"]):
        answer = run({**TOLD, "Which company makes Tarsk?": told})
        assert answer.hops[1].question == "Who founded Brezar Works?"


def test_a_hop_that_abstains_ends_the_run_and_says_why() -> None:
    answer = run({**TOLD, "Which company makes Tarsk?": ["x", "y", "z"]})
    assert answer.abstained
    assert len(answer.hops) == 1
    assert any("no answer is given by 2 sources" in warning for warning in answer.warnings)
    assert run({"Which company makes Tarsk?": ["x"] * 2}, min_radius=1).abstained


def test_the_words_of_a_single_source_do_not_go_on_unless_allowed() -> None:
    told = {"q": ["Brezar Works", "I don't know", "I don't know"], "about Brezar Works": ["x", "I don't know"]}
    held = MultiHop(lambda q: answered(told[q], q), ["q", "about {1}"]).answer("q")
    assert (held.abstained, len(held.hops), held.radius) == (True, 1, 0)
    assert any("a alone says it" in warning for warning in held.warnings)
    through = MultiHop(lambda q: answered(told[q], q, allow_sole_source=True), ["q", "about {1}"]).answer("q")
    assert (through.text, through.radius) == ("x", 0)


@pytest.mark.parametrize(
    ("rules", "radius"),
    [
        ({}, 2),
        ({"group_by": "passage"}, 0),
        ({"group_by": lambda passage: passage.source}, 0),
        ({"sources": [None] * 5}, 0),
        ({"sources": [None, *"abcd"]}, 2),  # passages without an origin are one
        ({"weights": {"a": 2}}, 2),
    ],
    ids=["origin", "passage", "function", "bare texts", "one without", "votes"],
)
def test_origins_are_counted_in_all_hops_or_nothing_is(rules: dict[str, Any], radius: int) -> None:
    answer = run(TOLD, **rules)
    assert min(hop.radius for hop in answer.hops) >= 2
    assert answer.radius == radius
    assert (answer.caveat is None) == (radius > 0)
    assert sum("the radius is 0" in warning for warning in answer.warnings) == (radius == 0)


def test_votes_and_groups_are_not_mixed_and_the_wording_of_lists_does_not_go_on_with_a_radius() -> None:
    rules = iter([{"weights": {"a": 2}}, {}])
    assert MultiHop(lambda q: answered(TOLD[q], q, **next(rules)), TEMPLATES).answer("q").radius == 0

    def ask(question: str) -> RobustAnswer:
        claims = (Claim("Brezar Works", 5, 2, (), ()),) if question == TEMPLATES[0] else ()
        return replace(answered(TOLD[question], question), claims=claims)

    answer = MultiHop(ask, TEMPLATES).answer("q")
    assert (answer.text, answer.radius, answer.caveat is None) == ("Ada Lind", 0, False)


@pytest.mark.parametrize("ask_in", ["thread", "loop"])
def test_asked_asynchronously_it_is_the_same(ask_in: str) -> None:
    async def ask(question: str) -> RobustAnswer:
        await asyncio.sleep(0)
        return answered(TOLD[question], question)

    hops = MultiHop(ask if ask_in == "loop" else lambda q: answered(TOLD[q], q).to_dict(), TEMPLATES)
    asked = "Who founded the maker of Tarsk?"
    assert asyncio.run(hops.aanswer(asked)).explain() == run(TOLD).explain()
    if ask_in == "loop":
        with pytest.raises(TypeError, match="await aanswer"):
            hops.answer(asked)


@pytest.mark.parametrize(
    ("templates", "message"),
    [(["q"] * 11, "11 questions to ask"), (["q", " "], "the query is empty"), (["q", "{2}?"], r"holds \{2\}, which")],
)
def test_questions_that_cannot_be_asked_are_refused(templates: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHop(lambda q: None, templates)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match=message):
        MultiHop(lambda q: None, lambda q: templates).answer("q")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="wrap it"):
        MultiHop(lambda q: None, "q")  # type: ignore[arg-type, return-value]


def test_a_function_may_write_the_questions() -> None:
    hops = MultiHop(lambda q: answered(TOLD[q], q), lambda question: TEMPLATES)
    assert hops.answer("Who founded the maker of Tarsk?").text == "Ada Lind"


def test_keys_hold_every_agreed_word_and_final_replies_to_the_letter() -> None:
    agreed = KeywordAggregation(CallableModel(lambda p: "Kilon Pemel, Brezar!"), final="never")
    passages = [Passage(str(n), source=str(n)) for n in range(3)]
    assert answer_key(agreed.answer("q", passages)) == "brezar, kilon, kilon pemel, pemel"
    assert answer_key(RobustAnswer("The Star, of Kinas.", 1, False, "q", "decoding")) == "star, of kinas"
    listed = ConsensusAggregation(CallableModel(lambda p: "Kilon\nBrezar"), task="list")
    assert answer_key(listed.answer("Which?", passages)) == "brezar, kilon"
    assert as_name("star of kinas, 5 mw") == "Star of Kinas, 5 mw"


def in_framework(framework: str) -> dict[str, Any]:
    """The names that a snippet of the page leaves open."""
    texts = {question: [f"{n} <{text}>" for n, text in enumerate(told)] for question, told in TOLD.items()}

    def my_llm(prompt: str) -> str:
        return prompt.rsplit("<", 1)[1].split(">")[0]

    if framework == "core":
        found = {q: [Passage(t, source=f"s{n}") for n, t in enumerate(told)] for q, told in texts.items()}
        return {"my_llm": my_llm, "search": found.__getitem__}
    if framework == "langchain":
        pytest.importorskip("langchain_core")
        from langchain_core.documents import Document
        from langchain_core.runnables import RunnableLambda

        listed = {
            q: [Document(page_content=t, metadata={"source": f"s{n}"}) for n, t in enumerate(told)]
            for q, told in texts.items()
        }
        return {"retriever": RunnableLambda(lambda asked: listed[asked["query"]]), "llm": CallableModel(my_llm)}
    pytest.importorskip("llama_index.core")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Retriever(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            told = texts[query_bundle.query_str]
            return [NodeWithScore(node=TextNode(text=t, metadata={"source": f"s{n}"})) for n, t in enumerate(told)]

    return {"index": SimpleNamespace(as_retriever=Retriever), "llm": CallableModel(my_llm)}


@pytest.mark.parametrize("framework", ["core", "langchain", "llamaindex"])
def test_the_page_of_look_ups_runs(framework: str) -> None:
    names, page = in_framework(framework), Page.read("docs/guide/hops.md")
    snippet = page.snippets("python")[0]
    if framework != "core":
        asked = {"langchain": "rag.invoke", "llamaindex": "engine.query"}[framework]
        [ask] = re.findall(rf"`(lambda question: {asked}[^`]*)`", page.text)
        snippet = re.sub(r"(?s)defense = .*?(?=hops = )", lambda _: f"ask = {ask}\n", snippet)
    if framework == "langchain":
        from langchain_robustrag import create_robust_retrieval_chain

        names["rag"] = create_robust_retrieval_chain(names["retriever"], names["llm"])
    elif framework == "llamaindex":
        from llamaindex_robustrag import RobustRAGQueryEngine

        names["engine"] = RobustRAGQueryEngine.from_args(names["index"].as_retriever(), llm=names["llm"])
    exec(compile(snippet, "docs/guide/hops.md", "exec"), names)
    assert (names["answer"].text, names["answer"].radius) == ("Ada Lind", 2)
