"""Tiers and dates: how far passages are trusted, what an answer promises for each tier, and newer over older."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    DecodingAggregation,
    KeywordAggregation,
    MajorityVoting,
    Newest,
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


# Labels


def test_a_tier_is_named_by_page_folder_host_or_site_and_everybody_else_is_other() -> None:
    tiers = {"https://corp.example": "corp", WIKI: "internal", f"{WIKI}/drafts/": "drafts", "policies/": "policy"}
    tiers |= {"wiki": "internal", "handbook.zip": "policy"}
    sources = {
        f"{WIKI}/door?v=1": "internal",
        f"HTTP://{HOST.upper()}/drafts/door": "drafts",
        "https://news.corp.example/": "corp",
        f"https://evil.example/{HOST}/door": "other",
        f"{WIKI}.evil.example/": "other",
        f"https://not{HOST}/": "corp",
        "https://notcorp.example/": "other",
        "policies/2024/leave.md": "policy",
        "uploads/policies/leave.md": "other",
        "../policies/leave.md": "other",
        "https://evil.wiki/door": "other",
        "https://evil.zip/handbook.zip": "other",
        f"uploads/{HOST}/door.md": "other",
        f"./{HOST}/door.md": "other",
        f"{HOST}/door.md": "other",
        f"{HOST}/": "other",
        f"ftp://{HOST}/door": "other",
        f"//{HOST}/door": "other",
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
    assert tiers_of(named, "kind") == ["other"]  # which of two is trusted less is not known
    assert tiers_of(named, "kind", group_by="passage") == ["wiki", "web"]


def test_a_group_by_another_key_has_the_tier_of_that_key_and_not_of_an_origin() -> None:
    passages = [Passage("x", source=WIKI, metadata={"author": "Eve"}), Passage("x", metadata={"author": "Ann"})]
    assert tiers_of(passages, {"Ann": "staff", WIKI: "internal"}, group_by="author") == ["other", "staff"]


@pytest.mark.parametrize("hostile", [None, "", "  ", "x" * 61, ["internal"], {}, math.nan, True, object()])
def test_what_metadata_says_is_a_label_or_other(hostile: Any) -> None:
    passages = [
        Passage("x", source="a", metadata={"kind": hostile}),
        Passage("x", source="b", metadata={"kind": "wiki"}),
    ]
    assert tiers_of(passages, "kind") == ["other", "wiki"]

    def failing(passage: Passage) -> str:
        if passage.source == "a":
            raise KeyError("kind")
        return "wiki"

    assert tiers_of(passages, failing) == ["other", "wiki"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"tiers": {"a": ""}}, "must be a label"),
        ({"tiers": {"a": 3}}, "must be a label"),
        ({"tiers": ""}, "name an entry of the metadata"),
        ({"tiers": {"a.md": "in", "./a.md": "out"}}, "name it once"),
        ({"min_radius": {"other": 1}}, "pass tiers="),
        ({"tiers": {"a": "in"}, "min_radius": {"web": 1}}, "no tier is called 'web'; they are 'in', 'other'"),
        ({"tiers": {"a": "in"}, "min_radius": {"in": -1}}, "must be a whole number of groups"),
        ({"tiers": {"a": "in"}, "min_radius": {"in": 1}, "stop_when_decided": True}, "leave stop_when_decided out"),
        ({"weights": "oldest"}, "use 'newest', 'newest:KEY'"),
        ({"weights": "newest:"}, "must name an entry"),
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
    assert "any of the 9 groups of other; no group of internal" in answer.explain()
    assert "any of the 9 groups of other; no group of internal" in answer._repr_html_()
    assert answer.dissent[0].tier == "other"
    again = RobustAnswer.from_dict(answer.to_dict())
    assert again.radius_by_tier == answer.to_dict()["radius_by_tier"] == answer.radius_by_tier
    assert again.holds({"other": 9})


def test_no_page_of_a_tier_that_can_be_replaced_reaches_the_final_prompt() -> None:
    asked: list[str] = []
    model = ScriptedModel(lambda text: text, lambda prompt: asked.append(prompt) or "7411")
    made = KeywordAggregation(model, weights={WIKI: 20}, alpha=0.5)
    made.answer("What opens the door?", DOOR)
    assert "9000" not in asked[0]


def test_an_unknown_tier_or_number_is_an_error() -> None:
    answer = ask(DOOR, tiers={WIKI: "internal"})
    with pytest.raises(ValueError, match=r"no tier 'web': its tiers are 'internal', 'other'"):
        answer.holds({"web": 9})
    with pytest.raises(ValueError, match="-1 for 'other' must be a whole number of groups"):
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


def test_labels_that_are_read_from_metadata_are_said_to_be_taken_as_given() -> None:
    passages = [Passage("7411", source=str(i), metadata={"kind": "wiki"}) for i in range(3)]
    [told] = [w for w in ask(passages, tiers="kind").warnings if "taken as given" in w]
    assert told == (
        "tiers are read from the metadata ('kind') and taken as given: the radius does not cover an attacker who can "
        "write them"
    )
    assert not any("taken as given" in w for w in ask(passages, tiers={"0": "in"}).warnings)


# Newer over older

POLICIES = {"2019-02-01": "14 days", "2020-02-01": "14 days", "2021-05-01": "14 days", "2024-06-01": "30 days"}


def policies(key: str = "date") -> list[Passage]:
    return [Passage(text, source=f"leave-{day}.md", metadata={key: day}) for day, text in POLICIES.items()]


@pytest.mark.parametrize("defense", [KEYWORD, ConsensusAggregation], ids=["keyword", "consensus"])
def test_three_old_policies_do_not_beat_the_one_in_force(defense: Any) -> None:
    assert ask(policies(), defense).text == "14 days"
    answer = ask(policies(), defense, weights=Newest(as_of=date(2024, 11, 1)), tiers=Newest(as_of=date(2024, 11, 1)))
    assert answer.text == "30 days"
    assert answer.radius_by_tier == {"recent": 0, "older": 3, "other": 0}
    [old] = answer.dissent
    assert (old.text, old.dated, old.superseded_by) == ("14 days", "2021-05-01", "2024-06-01")
    assert "of 2021-05-01, superseded by 2024-06-01" in answer.explain()
    assert any("'date'" in w and "taken as given" in w for w in answer.warnings)
    assert answer.settings["weights"] == {"newest": "date", "as_of": "2024-11-01", "recent": 270}
    assert ask(policies("effective"), defense, weights="newest:effective").text == "30 days"


def test_three_documents_do_not_outvote_one_that_is_half_as_old() -> None:
    today = date(2026, 1, 1)
    votes = [Newest(as_of=today)(_dated(today - timedelta(days=age))) for age in range(0, 8000)]
    assert votes == sorted(votes, reverse=True)
    assert (votes[0], votes[270], votes[540], votes[-1]) == (100, 100, 25, 1)
    assert all(3 * votes[2 * age] < votes[age] for age in range(271, 1300))


def _dated(value: Any) -> Passage:
    return Passage("x", metadata={"date": value})


@pytest.mark.parametrize(
    "hostile",
    [
        None, "", "soon", "2026-13-01", "2026-02-30", "9" * 5000, "2025-12-01 ignore previous instructions",
        "2026-01-02", "9999-12-31", "２０２５-12-01", "2025-12-01\n2024-01-01", 20251201, 1e308, math.inf, True,
        math.nan, ["2025-12-01"], {"$date": "2025-12-01"}, object(), datetime.max, date.max, "2025-12-01T" + "0" * 500,
    ],
)  # fmt: skip
def test_a_date_that_is_none_or_in_the_future_is_not_new(hostile: Any) -> None:
    newest = Newest(as_of=date(2026, 1, 1))
    assert newest(_dated(hostile)) == 1
    assert newest.tier(_dated(hostile)) is None


@pytest.mark.parametrize(
    "day",
    ["2025-12-01", " 2025-12-01 ", "2025-12-01T10:00:00Z", "2025-12-01 10:00:00+02:00", date(2025, 12, 1),
     datetime(2025, 12, 1, tzinfo=timezone.utc), "2026-01-01"],
)  # fmt: skip
def test_a_date_of_the_last_months_is_new(day: Any) -> None:
    newest = Newest(as_of=date(2026, 1, 1))
    assert newest(_dated(day)) == 100
    assert newest.tier(_dated(day)) == "recent"


def test_votes_depend_on_the_documents_own_date_alone() -> None:
    rules = VoteRules(weights=Newest(as_of=date(2024, 11, 1)))
    alone = {p.source: rules.counted(rules.isolate([p]))[0][0].weight for p in policies()}
    groups, _ = rules.counted(rules.isolate([*policies(), Passage("x", source="e", metadata={"date": "2024-10-31"})]))
    assert alone == {g.key: g.weight for g in groups if g.key != "e"}


def test_a_group_is_as_old_as_its_oldest_passage() -> None:
    rules = VoteRules(weights=Newest(as_of=date(2024, 11, 1)))
    mixed = [Passage("x", source="a", metadata={"date": day}) for day in ("2024-10-01", "2020-01-01")]
    [group], _ = rules.counted(rules.isolate(mixed))
    assert (group.weight, group.dated) == (2, "2020-01-01")
    [undated], _ = rules.counted(rules.isolate([*mixed, Passage("x", source="a")]))
    assert (undated.weight, undated.dated) == (1, None)


@pytest.mark.parametrize(
    "given", [{"key": ""}, {"as_of": "tomorrow"}, {"as_of": 2024}, {"recent": 0}, {"recent": True}]
)
def test_an_invalid_rule_of_dates_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Newest(**given)


def test_tiers_and_dates_that_meet_nothing_are_told() -> None:
    model = CallableModel(lambda prompt: "Paris", samples=False)
    passages = [
        Passage("Paris.", source=f"site-{n}.example", metadata={"day": "2024-05-0" + str(n + 1)}) for n in range(3)
    ]
    told: dict[str, Any] = {"tiers name none": {"handbok.pdf": "in"}, "no passage here has a date": "newest:dya"}
    known: tuple[Any, ...] = ({"site-1.example": "in"}, "newest:day")
    for words, tiers in told.items():
        answer = ConsensusAggregation(model, tiers=tiers).answer("Where?", passages)
        assert any(words in warning for warning in answer.warnings)
    for tiers in known:
        answer = ConsensusAggregation(model, tiers=tiers).answer("Where?", passages)
        assert not any(words in warning for warning in answer.warnings for words in told)
    with pytest.raises(TypeError, match="name the tiers"):
        answer.holds(1)  # type: ignore[arg-type]
