"""Tiers: how far passages are trusted, and what an answer promises for each tier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from robustrag_integrations import (
    ConsensusAggregation,
    DecodingAggregation,
    KeywordAggregation,
    MajorityVoting,
    Passage,
    RobustAnswer,
    TooFewVotesError,
)
from robustrag_integrations.grouping.votes import VoteRules
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel

HOST = "wiki.corp.example"
WIKI = f"https://{HOST}"
DOOR = [Passage("7411", source=f"{WIKI}/door"), *(Passage("9000", source=f"blog{i}.net/x") for i in range(9))]
KEYWORD = partial(KeywordAggregation, alpha=0.5, extractor=lambda text: {text}, final="never")
ASKED = ScriptedModel(lambda text: text, lambda prompt: prompt)


def ask(passages: Sequence[Passage], defense: Any = ConsensusAggregation, **rules: Any) -> RobustAnswer:
    return defense(ASKED, **rules).answer("What opens the door?", passages)


def tiers_of(passages: Sequence[Passage], tiers: Any, **rules: Any) -> list[str | None]:
    groups, _ = (made := VoteRules(tiers=tiers, **rules)).counted(made.isolate(passages))
    return [group.tier for group in groups]


def kind(passage: Passage) -> str:
    return str(passage.metadata["kind"])


# Labels


def test_a_tier_is_named_by_page_folder_host_or_site_and_everybody_else_is_other() -> None:
    tiers = {"https://corp.example": "corp", WIKI: "internal", f"{WIKI}/drafts/": "drafts", "policies/": "policy"}
    tiers |= {"wiki": "internal", "handbook.zip": "policy"}
    sources = {
        f"{WIKI}/door?v=1": "internal",
        f"HTTP://{HOST.upper()}/drafts/door": "drafts",
        "https://news.corp.example/": "corp",
        f"{WIKI}.evil.example/": "other",
        "https://notcorp.example/": "other",
        "policies/2024/leave.md": "policy",
        "uploads/policies/leave.md": "other",
        "https://evil.zip/handbook.zip": "other",
        f"uploads/{HOST}/door.md": "other",
        f"{HOST}/door.md": "other",
        f"ftp://{HOST}/door": "other",
        f"file:///{HOST}/door.md": "other",
        "policies": "policy",
        "handbook.zip": "policy",
    }
    assert {s: tiers_of([Passage("x", source=s)], tiers)[0] for s in sources} == sources
    assert tiers_of([Passage("x", source="a"), Passage("x"), Passage("x")], {"a": "in"}) == ["in", "other"]


def test_a_group_of_several_tiers_is_the_least_trusted_of_them() -> None:
    passages = [Passage("x", source=s) for s in ("a", "b", "a", "a", "b", "c")]
    tiers = {"a": "internal", "b": "vendor"}
    assert tiers_of(passages, tiers, group_size=2) == ["vendor", "internal", "other"]
    named = [Passage("x", source="a", metadata={"kind": k}) for k in ("wiki", "web")]
    assert tiers_of(named, kind) == ["other"]  # which of two is trusted less is not known
    assert tiers_of(named, kind, group_by="passage") == ["wiki", "web"]


@pytest.mark.parametrize("hostile", [None, "", "  ", "x" * 61, ["internal"], {}, math.nan, True, object(), KeyError])
def test_what_a_function_gives_is_a_label_or_other(hostile: Any) -> None:
    def label(passage: Passage) -> Any:
        if passage.source == "b":
            return "wiki"
        if hostile is KeyError:
            raise KeyError("kind")
        return hostile

    assert tiers_of([Passage("x", source="a"), Passage("x", source="b")], label) == ["other", "wiki"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"tiers": {"a": ""}}, "must be a label"),
        ({"tiers": {"a": 3}}, "must be a label"),
        ({"tiers": {"a.md": "in", "./a.md": "out"}}, "name it once"),
        ({"min_radius": {"other": 1}}, "pass tiers="),
        ({"tiers": {"a": "in"}, "min_radius": {"web": 1}}, "no tier is called 'web'; they are 'in', 'other'"),
        ({"tiers": {"a": "in"}, "min_radius": {"in": -1}}, "must be a whole number of sources"),
        ({"tiers": {"a": "in"}, "min_radius": {"in": 1}, "stop_when_decided": True}, "leave stop_when_decided out"),
    ],
)
def test_invalid_tiers_are_named(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VoteRules(**rules).check_complete()
    with pytest.raises(TypeError, match="tiers must be a mapping"):
        VoteRules(tiers=["a"])  # type: ignore[arg-type]


# What an answer promises


@pytest.mark.parametrize("defense", [KEYWORD, ConsensusAggregation], ids=["keyword", "consensus"])
def test_a_wiki_of_twenty_votes_stands_against_nine_pages_that_lie(defense: Any) -> None:
    answer = ask(DOOR, defense, weights={WIKI: 20}, tiers={WIKI: "internal"})
    assert answer.text == "7411"
    assert answer.radius_by_tier == {"internal": 0, "other": 9}
    assert answer.holds({"other": 9, "internal": 0})
    assert answer.holds({"other": 200})
    assert not answer.holds({"internal": 1})
    assert not answer.holds({"other": 9, "internal": 1})
    assert "any of the 9 sources of other; no source of internal" in answer.explain()
    assert "any of the 9 sources of other; no source of internal" in answer._repr_html_()
    assert answer.dissent[0].tier == "other"
    again = RobustAnswer.from_dict(answer.to_dict())
    assert again.radius_by_tier == answer.to_dict()["radius_by_tier"] == answer.radius_by_tier
    assert again.holds({"other": 9})


def test_an_unknown_tier_or_number_is_an_error() -> None:
    answer = ask(DOOR, tiers={WIKI: "internal"})
    with pytest.raises(ValueError, match=r"no tier 'web': its tiers are 'internal', 'other'"):
        answer.holds({"web": 9})
    with pytest.raises(ValueError, match="-1 for 'other' must be a whole number of sources"):
        answer.holds({"other": -1})
    with pytest.raises(ValueError, match="it has none; pass tiers="):
        ask(DOOR).holds({"other": 1})
    assert ask(DOOR).radius_by_tier is None


def test_below_a_minimum_by_tier_the_answer_is_an_abstention() -> None:
    rules: dict[str, Any] = {"tiers": {WIKI: "internal"}, "min_radius": {"other": 9}}
    assert ask(DOOR, weights={WIKI: 20}, **rules).text == "7411"
    weak = ask(DOOR, weights={WIKI: 5}, **rules)
    assert weak.abstained
    assert weak.radius_by_tier == {"internal": 0, "other": 0}
    assert not weak.holds({"other": 1})
    assert any("radius is {'internal': 1, 'other': 1}, below" in w for w in weak.warnings)
    assert weak.evidence["radius_by_tier"] == {"internal": 1, "other": 1}
    with pytest.raises(TooFewVotesError, match="below min_radius"):
        ask(DOOR, weights={WIKI: 5}, below="raise", **rules)
    alone = ask(DOOR[:1] * 2, tiers={WIKI: "internal"}, min_radius={"other": 9}, min_support=1)
    assert not alone.abstained  # there is no group of other that could be replaced


def test_tiers_change_no_answer() -> None:
    for defense in (KeywordAggregation, ConsensusAggregation):
        plain, tiered = ask(DOOR, defense), ask(DOOR, defense, tiers={WIKI: "internal"})
        assert (plain.text, plain.radius, plain.evidence) == (tiered.text, tiered.radius, tiered.evidence)


def test_votes_over_options_and_decoding() -> None:
    voting = MajorityVoting(ASKED, prompts=BARE_CHOICES, tiers={"a": "in"}, weights={"a": 5})
    passages = [Passage("yes", source="a"), Passage("no", source="b"), Passage("no", source="c")]
    answer = voting.answer("q", passages, choices=["yes", "no"])
    assert (answer.text, answer.radius_by_tier) == ("yes", {"in": 0, "other": 2})
    model = ScriptedDecodingModel(lambda text, prefix: [1, 0, 0] if prefix else [0, 1, 0])
    decoded = DecodingAggregation(model, prompts=BARE, tiers={"a": "in"}).answer("q", passages)
    assert decoded.radius_by_tier is None
    assert "how many of each can be replaced is not given for decoding" in decoded.explain()
    assert decoded.radius > 0
    assert decoded.holds({"in": 1, "other": 0})
    assert not decoded.holds({"in": 1, "other": decoded.radius})
