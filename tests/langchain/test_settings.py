"""`settings=`: a settings file in every factory, as in the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from langchain_robustrag import (
    VoteRules,
    create_robust_documents_chain,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
)
from langchain_robustrag.middleware import RobustRetrievalMiddleware
from robustrag_integrations import CallableModel, from_settings, load_settings
from robustrag_integrations.defenses.settings_file import SettingsError
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, planted, read, truthful

FILE = "aggregation: keyword\nsettings: {alpha: 0.4, beta: 2}\nvotes: {group_by: passage}\nretrieval: {top_k: 6}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(FILE)
    return path


def test_a_chain_from_a_file_answers_as_the_core_does(settings: Path) -> None:
    chain = create_robust_documents_chain(Reader(), PROMPT, settings=settings, return_robustness=True)
    documents = [*truthful(5), planted()]
    found = chain.invoke({"input": QUESTION, "context": documents})["robustness"]
    core = from_settings(CallableModel(read), settings)
    wanted = core.answer(QUESTION, [d.page_content for d in documents])
    assert chain.settings.as_dict() == core.settings.as_dict()
    assert chain.rules == core.rules
    assert found.evidence["retained"] == wanted.evidence["retained"] == ["paris"]


def test_what_is_given_wins_over_the_file(settings: Path) -> None:
    chain = create_robust_documents_chain(
        Reader(), settings=load_settings(settings), beta=5, votes=VoteRules(group_size=2)
    )
    told = chain.settings.as_dict()
    assert (told["alpha"], told["beta"]) == ("2/5", 5)
    assert (chain.rules.group_size, chain.rules.by) == (2, "passage")
    with pytest.raises(SettingsError, match="these settings are for 'keyword'"):
        create_robust_documents_chain(Reader(), settings=settings, aggregation="voting")


def test_rules_may_go_with_rules_of_the_file(settings: Path) -> None:
    settings.write_text("aggregation: consensus\nvotes: {tiers: {wiki: internal}}\n")
    votes = VoteRules(min_radius={"other": 9})
    rules = create_robust_documents_chain(Reader(), settings=settings, votes=votes).rules
    assert (rules.min_radius, rules.tiers) == ({"other": 9}, {"wiki": "internal"})
    votes = VoteRules(min_radius={"web": 9})
    with pytest.raises(ValueError, match="no tier is called 'web'"):
        create_robust_documents_chain(Reader(), settings=settings, votes=votes)
    settings.write_text("aggregation: consensus\nvotes: {stop_when_decided: true}\n")
    votes = VoteRules(wave_size=2)
    assert create_robust_documents_chain(Reader(), settings=settings, votes=votes).rules.stop_when_decided
    settings.write_text("aggregation: consensus\n")
    with pytest.raises(ValueError, match="wave_size=2 requires stop_when_decided=True"):
        create_robust_documents_chain(Reader(), settings=settings, votes=votes)


def test_every_factory_takes_the_file(settings: Path) -> None:
    settings.write_text("aggregation: consensus\nsettings: {min_support: 3}\n")
    retriever = ListRetriever(documents=truthful())
    chain = create_robust_retrieval_chain(retriever, Reader(), settings=settings)
    assert "'min_support': 3" in str(chain.invoke({"input": QUESTION})["robustness"].settings)
    tool = create_robust_retriever_tool(retriever, Reader(), "notes", "Looks things up.", settings=settings)
    assert tool.invoke({"type": "tool_call", "id": "1", "name": "notes", "args": {"query": QUESTION}}).artifact
    middleware = RobustRetrievalMiddleware(Reader(), tools=["notes"], settings=str(settings))
    assert middleware._answering.settings.as_dict()["min_support"] == 3


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("aggregation: keyword\nsettings: {aplha: 1}")
    with pytest.raises(SettingsError, match=r"mine\.yaml: settings\.aplha: .*did you mean 'alpha'"):
        create_robust_documents_chain(Reader(), settings=path)


@pytest.mark.parametrize("name", ["llm", "final_llm"])
def test_what_is_no_model_is_refused_by_the_name_of_its_argument(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be a language model, a Runnable or a function, got 5"):
        create_robust_documents_chain(
            **{"aggregation": "keyword", "final": "always", **{"llm": Reader(), name: 5}}, prompt=PROMPT
        )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("alhpa", "alpha"), ("aggregaton", "aggregation"), ("timeot", "timeout"), ("min_radus", "min_radius")],
)
def test_the_nearest_argument_is_named(typed: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"unknown arguments {typed}; did you mean {meant}"):
        create_robust_documents_chain(Reader(), PROMPT, **{"aggregation": "keyword", "final": "always", **{typed: 1}})


def test_the_usual_vote_rules_may_be_given_by_themselves(settings: Path) -> None:
    rules = {"group_size": 2, "weights": {"a": 2}, "min_radius": 1}
    alone = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", group_by="passage", **rules)
    together = create_robust_documents_chain(
        Reader(), PROMPT, aggregation="keyword", group_by="passage", votes=VoteRules(**rules)
    )
    assert alone.rules == together.rules
    assert create_robust_documents_chain(Reader(), PROMPT, settings=settings, min_radius=1).rules.min_radius == 1
    with pytest.raises(ValueError, match=r"min_radius=2 and votes\.min_radius=1"):
        create_robust_documents_chain(Reader(), PROMPT, min_radius=2, votes=VoteRules(min_radius=1))
