"""A settings file: what it can hold, what it cannot, and that what is typed wins over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, from_settings, load_settings
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.settings_file import SavedSettings, SettingsError

GOOD = """\
# chosen by hand
schema: robustrag/settings/3
method: keyword
task: short_answer
settings:
  alpha: 0.4
  beta: 4
  min_words: 1
votes:
  group_by: passage
  min_radius: 1
retrieval:
  top_k: 7
"""
PASSAGES = ["Anna Lind runs the mill."] * 6
MODEL = CallableModel(lambda prompt: "Anna Lind")


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "settings.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_gives_the_method_its_settings_and_what_one_vote_is(file) -> None:
    defense = from_settings(MODEL, file(GOOD))
    by_hand = KeywordAggregation(
        MODEL, alpha=0.4, beta=4, min_words=1, task="short_answer", group_by="passage", min_radius=1
    )
    assert type(defense) is KeywordAggregation
    assert (defense.settings.as_dict(), defense.rules) == (by_hand.settings.as_dict(), by_hand.rules)
    given, wanted = (d.answer("Who runs the mill?", PASSAGES) for d in (defense, by_hand))
    assert given.text == wanted.text
    assert given.radius == wanted.radius >= 1


def test_grouping_by_rank_or_by_key_is_one_choice_and_what_is_given_makes_all_of_it(file) -> None:
    sized = load_settings(file("method: voting\nvotes: {passages_per_source: 2}"))
    assert from_settings(MODEL, sized).rules.by == "passage"
    rules = from_settings(MODEL, sized, group_by="origin").rules
    assert (rules.by, rules.passages_per_source) == ("origin", 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_class_of_another_method_refuses_a_file_by_name(method: str, file) -> None:
    other = "voting" if method != "voting" else "keyword"
    made = METHODS[other].class_name
    with pytest.raises(SettingsError, match=f"settings.yaml: these settings are for {other!r}.*use {made}.model, set"):
        METHODS[method].load()(MODEL, settings=file(f"method: {other}"))


@pytest.mark.parametrize("method", METHODS)
def test_every_plain_setting_of_a_method_can_stand_in_a_file(method: str, file) -> None:
    plain = {s.name: s.default for s in METHODS[method].settings if s.default is not None and s.kind is not object}
    task, votes = METHODS[method].tasks[0], {"group_by": "author: x"}
    parts = {"method": method, "task": task, "settings": plain, "votes": votes, "retrieval": {"top_k": 5}}
    path = file(json.dumps(parts))
    saved = load_settings(path)
    assert saved == SavedSettings(str(path), method, {"task": task, **plain}, votes, top_k=5)
    assert load_settings(saved) is saved


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("settings: {alpha: 0.3}", "method: None must be one of keyword"),
        ("method: keywrod", "method: 'keywrod' must be one of .*did you mean 'keyword'"),
        ("method: keyword\nsetings: {}", "setings: unknown key; did you mean 'settings'"),
        ("method: voting\nsettings: {alpha: 0.3}", "settings.alpha: unknown key; .*quorum"),
        ("method: keyword\nsettings: {alpha: '1e999999999'}", "settings: alpha='1e999999999' must lie in"),
        ("method: keyword\nsettings: {alpha: .nan}", "settings: alpha=nan"),
        ("method: keyword\nsettings: {beta: true}", "settings: beta=True must be a whole number"),
        (
            "method: keyword\nsettings: {extractor: 'os:system'}",
            "settings.extractor: 'os:system' must be one of words, spacy",
        ),
        ("method: keyword\nsettings: {abstains: [no]}", "settings.abstains: cannot stand in a file"),
        ("method: keyword\nsettings: {abstention: [x]}", r"settings: abstention=\['x'\] must be a text"),
        ("method: keyword\nsettings: 3", "settings: must hold keys and values, got 3"),
        ("method: keyword\nsettings: {alpha: }", "settings.alpha: is empty"),
        ("method: keyword\ntask: multiple_choice", "task: 'multiple_choice' must be one of short_answer, long"),
        ("method: keyword\nvotes: {group_by: [a]}", "votes.group_by: must be one value"),
        ("method: keyword\nvotes: {min_radios: 1}", "votes.min_radios: unknown key; did you mean 'min_radius'"),
        ("method: keyword\nvotes: {min_radius: -1}", "votes: "),
        ("method: keyword\nvotes: {stop_when_decided: true}", "votes: .*Consensus"),
        ("method: keyword\nretrieval: {top_k: 0}", "retrieval.top_k: 0 must be a whole number"),
        ("schema: robustrag/settings/9\nmethod: keyword", "schema: 'robustrag/settings/9' must be"),
        ("method: !!python/object/apply:os.system [echo]", "not YAML"),
        ("method: [" + "[" * 30_000, "aliases .* and deep nesting are not read"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_key_and_the_nearest_name(file, text: str | bytes, said: str) -> None:
    path = file(text)
    with pytest.raises(SettingsError, match=rf"(?s)settings\.yaml: {said}"):
        load_settings(path)


def test_a_file_that_is_not_there_and_something_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.yaml: cannot read the settings file: No such file"):
        load_settings(tmp_path / "none.yaml")
    with pytest.raises(TypeError, match="must be the path of a settings file"):
        load_settings({"alpha": 0.3})  # type: ignore[arg-type]
