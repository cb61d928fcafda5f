"""What is agreed on, how it is shown, and how far both hold."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from robustrag_integrations.defenses.agreement.tally import votes_for
from robustrag_integrations.defenses.consensus.counting import (
    ConsensusRule,
    Wording,
    agreed_keywords,
    list_text,
    shown_text,
    strongest_keyword,
)
from robustrag_integrations.defenses.consensus.plan import Consensus
from robustrag_integrations.defenses.consensus.radius import ConsensusRadius
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.consensus.wording import phrases_of, wordings_of
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading
from tests.helpers.radii import attack

HALF = ConsensusRule(Fraction(1, 2), 2)


def sets(*said: str | None) -> list[frozenset[str] | None]:
    return [None if s is None else frozenset(s.split()) for s in said]


def test_what_the_strongest_keywords_own_groups_say_together_is_agreed_on() -> None:
    assert agreed_keywords(sets("a b", "a b", "a", "a c", "z", "z", "z", None), HALF) == {"a"}
    assert agreed_keywords(sets("a b", "a b", "a b", "a", "z", "z", "z"), HALF) == {"a", "b"}


def test_what_other_groups_say_never_enters_however_many_they_are_below_the_strongest() -> None:
    assert agreed_keywords(sets(*["a b"] * 5, *["x y"] * 4), HALF) == {"a", "b"}


def test_nothing_is_agreed_on_below_the_smallest_support() -> None:
    assert agreed_keywords(sets("a", "b", "c"), HALF) == frozenset()
    assert agreed_keywords(sets("a", "a"), ConsensusRule(Fraction(1, 2), 3)) == frozenset()
    assert agreed_keywords([], HALF) == frozenset()


def test_ties_go_to_more_words_then_characters_then_the_smaller_text() -> None:
    assert strongest_keyword(votes_for([{"zz", "a b", "c d"}])) == "a b"
    assert strongest_keyword({}) is None


def test_shares_are_compared_exactly() -> None:
    rule = ConsensusRule(Fraction("0.7"), 1)
    assert not rule.reached(7, 10)
    assert rule.reached(8, 10)


def test_most_groups_wording_is_shown_and_else_a_list() -> None:
    same, other = (
        Wording("Karl Gross", {"karl gross": "Karl Gross"}),
        Wording("KARL Gross", {"karl gross": "KARL Gross"}),
    )
    assert shown_text(["karl gross"], [same, same, other], 3) == "Karl Gross"
    assert shown_text(["karl gross"], [same, other], 2) == "karl gross"
    assert shown_text([], [], 0) == ""


def test_a_list_leaves_out_what_stands_in_another_part() -> None:
    assert list_text(["a", "b"], ["63.4", "63.4%"]) == "63.4%"
    assert list_text(["a", "b"], [None, None]) == "a, b"
    assert list_text(["a", "b"], ["Tin", "tin"]) == "Tin"


@pytest.mark.parametrize(
    ("response", "window"),
    [
        ("The tellers were Dawes & Hartley, they say.", "Dawes & Hartley"),
        ("Hartley, who met Dawes, and Dawes and Hartley", "Dawes and Hartley"),
        ("Dawes alone", None),
    ],
)
def test_the_shortest_window_with_all_phrases_is_found(response: str, window: str | None) -> None:
    keywords = frozenset(w for w in ("dawes", "hartley") if w in response.casefold())
    assert wordings_of([(response, keywords)], {"dawes", "hartley"}, ["dawes", "hartley"])[0].window == window


def test_a_long_window_is_none() -> None:
    response = "Dawes " + "and so on " * 40 + "Hartley"
    both = frozenset({"dawes", "hartley"})
    [worded] = wordings_of([(response, both)], both, sorted(both))
    assert worded.window is None


def test_phrases_within_phrases_are_left_out_in_any_script() -> None:
    assert phrases_of({"karl", "gross", "karl gross", "mayor"}) == ("karl gross", "mayor")
    assert phrases_of({"東京", "東京都"}) == ("東京都",)


def consensus(said: list[str | None]) -> Consensus:
    readings = [Reading(Response(text), found) for text, found in zip(said, sets(*said), strict=True)]
    return Consensus.of(readings, ConsensusSettings.of(share=0.5, min_support=2))


def proof(said: list[str | None]) -> ConsensusRadius:
    return consensus(said).radius()


def test_the_radius_grows_with_the_lead() -> None:
    assert [proof(["a"] * n + ["b"] * (10 - n)).radius() for n in (5, 6, 7, 8, 9, 10)] == [0, 0, 1, 2, 3, 4]
    assert proof(["a", "b", None]).radius() == 0
    assert [proof(["a"] * n + ["b"] * (80 - n)).radius() for n in (80, 60, 40)] == [39, 19, 0]  # many replaced groups


def test_no_attack_within_the_radius_changes_the_text() -> None:
    found = attack("consensus", 100_000, "ci", tries=30)
    print(found)
    assert found.violations == ()
    assert found.reached >= 0.85 * found.limited


def test_pending_groups_may_say_anything() -> None:
    rng = random.Random(5)
    for _ in range(300):
        said: list[str | None] = [rng.choice(["a", "a", "a", "a b", "b", None]) for _ in range(6)]
        known = proof(said)
        pending = rng.randint(1, 2)
        if not known.holds(0, pending):
            continue
        shown = consensus(said).text
        for _ in range(40):
            late: list[str | None] = [rng.choice(["a", "b", "x", "b x", "a x", None]) for _ in range(pending)]
            assert consensus([*said, *late]).text == shown
