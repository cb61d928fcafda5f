"""`settings=`: a settings file in the synthesizer and the engines, as in the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaindex_robustrag import RobustRAGQueryEngine, RobustRAGSynthesizer
from robustrag_integrations import CallableModel, VoteRules, from_settings, load_settings
from robustrag_integrations.defenses.settings_file import SettingsError
from tests.llamaindex.fakes import QUESTION, FactReader, index_of, nodes_of, truthful

FILE = "aggregation: keyword\nsettings: {alpha: 0.4, beta: 2}\nvotes: {group_by: passage}\nretrieval: {top_k: 6}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(FILE)
    return path


def test_a_synthesizer_from_a_file_answers_as_the_core_does(settings: Path) -> None:
    texts = truthful(6)
    reader = FactReader()
    response = RobustRAGSynthesizer(reader, settings=settings).synthesize(QUESTION, nodes_of(texts))
    core = from_settings(CallableModel(lambda prompt: reader.complete(prompt).text), settings)
    wanted = core.answer(QUESTION, texts)
    report = response.metadata["robustrag"]
    assert report["settings"] == wanted.to_dict()["settings"]
    assert (str(response).casefold(), report["radius"]) == (wanted.text.casefold(), wanted.radius)


def test_what_is_given_wins_over_the_file(settings: Path) -> None:
    synthesizer = RobustRAGSynthesizer(FactReader(), settings=load_settings(settings), beta=5, group_by="origin")
    assert (synthesizer._settings.as_dict()["beta"], synthesizer.group_by) == (5, "origin")
    with pytest.raises(SettingsError, match="these settings are for 'keyword'"):
        RobustRAGSynthesizer(FactReader(), settings=settings, aggregation="voting")


def test_rules_may_go_with_rules_of_the_file(settings: Path) -> None:
    settings.write_text("aggregation: consensus\nvotes: {tiers: {wiki: internal}}\n")
    votes = VoteRules(min_radius={"other": 9})
    rules = RobustRAGSynthesizer(FactReader(), settings=settings, votes=votes)._rules
    assert (rules.min_radius, rules.tiers) == ({"other": 9}, {"wiki": "internal"})
    votes = VoteRules(min_radius={"web": 9})
    with pytest.raises(ValueError, match="no tier is called 'web'"):
        RobustRAGSynthesizer(FactReader(), settings=settings, votes=votes)
    settings.write_text("aggregation: consensus\nvotes: {stop_when_decided: true}\n")
    votes = VoteRules(wave_size=2)
    assert RobustRAGSynthesizer(FactReader(), settings=settings, votes=votes)._rules.stop_when_decided
    settings.write_text("aggregation: consensus\n")
    with pytest.raises(ValueError, match="wave_size=2 requires stop_when_decided=True"):
        RobustRAGSynthesizer(FactReader(), settings=settings, votes=votes)


def test_engines_and_factories_take_the_file(settings: Path) -> None:
    settings.write_text("aggregation: consensus\nsettings: {min_support: 3}\n")
    retriever = index_of(truthful()).as_retriever(similarity_top_k=6)
    response = RobustRAGQueryEngine.from_args(retriever, FactReader(), settings=settings).query(QUESTION)
    assert response.metadata["robustrag"]["settings"]["min_support"] == 3
    assert RobustRAGSynthesizer(FactReader(), settings=settings)._settings.as_dict()["min_support"] == 3
    ready = RobustRAGSynthesizer(FactReader())
    with pytest.raises(TypeError, match="settings: pass these to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(retriever, response_synthesizer=ready, settings=settings)


def test_what_llamaindex_does_not_have_is_named(settings: Path) -> None:
    settings.write_text("aggregation: keyword\nvotes: {group_size: 2}\n")
    with pytest.raises(ValueError, match=r"group_size=2: .*leave group_size out"):
        RobustRAGSynthesizer(FactReader(), settings=settings)
