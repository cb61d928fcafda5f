"""Who supports an answer: words against words, names before small talk, nobody falsely."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, Passage
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.agreement.denials import denies, names_longer
from robustrag_integrations.defenses.agreement.support import supports
from robustrag_integrations.defenses.keyword.absolute import AbsoluteThreshold
from robustrag_integrations.defenses.keyword.counting import tally_keywords


def answer_of(final: str, replies: Sequence[str], **settings: object) -> RobustAnswer:
    def model(prompt: str) -> str:
        said = [reply for i, reply in enumerate(replies) if f"passage {i}." in prompt]
        return said[0] if said else final

    passages = [f"passage {i}." for i in range(len(replies))]
    return KeywordAggregation(CallableModel(model), **settings).answer("Which?", passages)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("final", "honest", "others"),
    [
        ("Karl Gross", "Karl Gross, the mayor", {"Hans Wolf, the mayor": "outvoted", "Gross": "supports"}),
        ("The mayor is Karl Gross.", "Mayor Karl Gross", {"The mayor is Hans Wolf": "outvoted"}),
        ("Karl Gross", "Karl Gross", {"Karl Wolf": "outvoted", "Karl Gross of the SPD": "supports"}),
        ("2015", "In 2015.", {"15": "outvoted", "2014": "outvoted", "15 March 2015": "supports"}),
        ("15 March 2015", "15 March 2015", {"14 March 2015": "partial", "2015": "supports", "15": "outvoted"}),
        ("New York Times", "The New York Times", {"New York Post": "partial", "Boston Globe": "outvoted"}),
        ("University of Oslo", "University of Oslo", {"University of Bergen": "outvoted"}),
        ("copper and tin", "copper and tin", {"gold and tin": "partial", "tin, copper": "supports"}),
        ("Dawes & Hartley", "Dawes & Hartley", {"Dawes and Hartley": "supports", "Dawes and Smith": "outvoted"}),
        ("9 million euros", "9 million euros", {"9 billion euros": "outvoted"}),
        ("Karl Gross", "Karl Gross", {"Mr. Karl Gross": "supports", "It was not Karl Gross.": "outvoted"}),
        ("北京", "北京", {"答案是北京市": "supports", "上海": "outvoted"}),
        ("no", "No.", {"yes": "outvoted"}),
        ("World War II", "World War II", {"World War I": "outvoted"}),
        ("10 km", "10 km", {"10 miles": "outvoted"}),
        ("$5 million", "$5 million", {"$5 billion": "outvoted"}),
        ("room 12", "room 12", {"floor 12": "partial", "12": "supports"}),
        ("George W. Bush", "George W. Bush", {"George H. W. Bush": "partial", "Bush": "supports"}),
        ("J. K. Rowling", "J. K. Rowling", {"J.K. Rowling": "supports", "JK Rowling": "supports"}),
        ("the U.S.", "the U.S.", {"the US": "supports", "the UK": "outvoted"}),
        ("Jane Smith and Bob Lee", "Jane Smith and Bob Lee", {"Jane Lee and Bob Smith": "partial"}),
        ("Guinea", "Guinea", {"Guinea-Bissau": "partial", "Equatorial Guinea": "partial", "in Guinea": "supports"}),
        ("Lucy", "Lucy", {"Lucy's brother": "partial", "Lucy Liu": "partial", "It is Lucy": "supports"}),
        ("C", "C", {"C++": "outvoted"}),
        ("Bursa", "Bursa", {"Cevap Bursa'dır.": "supports", "Antwort: Bursa": "supports", "Yeni Bursa": "partial"}),
        ("Berlin", "Berlin", {"Munich, not Berlin": "outvoted", "Berlin is not the answer, Munich is": "partial"}),
        ("Berlin", "Berlin", {"Berlin, not Munich": "supports", "Nicht Berlin": "partial"}),
        ("Mount Everest", "Mount Everest", {"Mount Everest is wrong; it is K2": "partial"}),
        ("Paris est la capitale.", "Paris est la capitale.", {"Ce n'est pas Paris": "partial", "Paris": "supports"}),
        ("東京", "東京", {"東京ではない": "partial", "東京です": "supports"}),
        ("서울", "서울", {"서울이 아니다": "partial"}),
        ("It is effective.", "It is effective.", {"It is not effective.": "outvoted"}),
    ],
)
def test_a_group_supports_what_it_says_and_nothing_that_only_looks_like_it(
    final: str, honest: str, others: dict[str, str]
) -> None:
    answer = answer_of(final, [honest] * 6 + list(others))
    assert [g.status for g in answer.groups[:6]] == ["supports"] * 6
    assert {g.response: g.status for g in answer.groups[6:]} == others


def test_a_majority_whose_keywords_were_kept_is_left_out_and_not_outvoted() -> None:
    answer = answer_of("Paris", ["Paris"] * 4 + ["Lyon, in the south", "It is Lyon.", "Lyon", "The city of Lyon"])
    assert [g.status for g in answer.groups] == ["supports"] * 4 + ["left_out"] * 4
    assert "left out" in answer.explain()


def test_a_word_that_supporters_say_too_leaves_a_liar_outvoted() -> None:
    answer = answer_of("Karl Gross", ["Karl Gross is the mayor"] * 7 + ["Hans Wolf is the mayor"] * 2)
    assert "mayor" in answer.evidence["retained"]
    assert [g.status for g in answer.groups[7:]] == ["outvoted"] * 2
    assert answer.groups[8].margin == 3


def test_an_answer_that_no_group_gave_is_warned_of_and_supported_by_none() -> None:
    answer = answer_of("Lisbon", ["Paris"] * 5)
    assert {g.status for g in answer.groups} == {"left_out"}
    assert answer.citations == ()
    assert any("no group said what the answer says" in w for w in answer.warnings)


def test_a_final_abstention_is_supported_by_nobody() -> None:
    answer = answer_of("I don't know", ["Paris"] * 5 + ["Rome"])
    assert [g.status for g in answer.groups] == ["left_out"] * 5 + ["outvoted"]
    assert answer.citations == ()


def test_one_item_of_a_long_answer_is_enough() -> None:
    final = "Karl Gross was a painter. Anna Lind was a poet."
    replies = ["Karl Gross, painter"] * 4 + ["Anna Lind, poet"] * 4 + ["Otto Maier, baker"]
    answer = answer_of(final, replies, task="long_form", min_words=1, alpha=0.3, beta=3)
    assert [g.status for g in answer.groups] == ["supports"] * 8 + ["outvoted"]


def test_an_extractor_that_fails_over_the_answer_costs_no_answer() -> None:
    def extractor(text: str) -> set[str]:
        if text == "The answer: a":
            raise RuntimeError("boom")
        return set(text.split())

    answer = answer_of("The answer: a", ["a"] * 4, extractor=extractor)
    assert (answer.text, answer.radius) == ("The answer: a", 1)
    assert {g.status for g in answer.groups} == {"left_out"}


def test_standings_do_not_depend_on_the_order_of_the_groups() -> None:
    sets = [frozenset(s.split()) for s in ("a b", "a", "b c", "c", "a c", "d")]
    tally = tally_keywords(sets, AbsoluteThreshold.of(0.3, 2))
    forward = supports("a", ["a"], sets, tally)
    assert supports("a", ["a"], sets[::-1], tally) == forward[::-1]
    assert [s.status for s in forward if s] == ["supports", "supports", "left_out", "left_out", "supports", "outvoted"]


def test_a_custom_abstention_counts_for_the_final_answer_too() -> None:
    answer = answer_of("Keine Ahnung!", ["Paris"] * 5, abstention=lambda text: text.startswith("Keine Ahnung"))
    assert (answer.text, answer.abstained) == ("Keine Ahnung!", True)
    assert answer_of("Keine Ahnung, aber Paris", ["Paris"] * 5, abstention=lambda text: False).abstained is False


def test_an_abstention_function_that_fails_over_the_final_answer_costs_no_answer() -> None:
    def fails(text: str) -> bool:
        if text == "Rome":
            raise ValueError("boom")
        return False

    answer = answer_of("Rome", ["Paris"] * 5, abstention=fails)
    assert (answer.text, answer.abstained) == ("Rome", False)


def test_a_reply_that_denies_what_the_answer_says_is_not_cited_even_where_nobody_else_supports() -> None:
    answer = answer_of("Paris", ["It is not the city of Paris."] * 5)
    assert answer.citations == ()


def test_an_answer_that_denies_is_supported_by_those_who_deny() -> None:
    answer = answer_of("Berlin is not the capital.", ["Berlin is not the capital."] * 5)
    assert {g.status for g in answer.groups} == {"supports"}


@pytest.mark.parametrize("text", ["Berlin " * 20_000, "not " * 50_000 + "Berlin", "a b " * 50_000, "B-" * 90_000])
def test_long_replies_are_looked_through_in_no_time(text: str) -> None:
    assert denies(text, "berlin") in (True, False)
    assert names_longer(text, "berlin", ()) in (True, False)


def test_what_long_replies_say_is_not_kept() -> None:
    replies = [frozenset(f"phrase {place} of reply {reply}" for place in range(2000)) for reply in range(20)]
    sets = [frozenset({"bo ek"})] * 30 + replies
    tally = tally_keywords(sets, AbsoluteThreshold.of(0.3, 2))
    tracemalloc.start()
    try:
        supports("Bo Ek", ["bo ek"], sets, tally)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000  # bytes; the phrases of one reply have 50,000 characters


def test_several_groups_that_contradict_the_answer_are_told() -> None:
    replies = ["The bridge is open."] * 3 + ["The bridge is not open."] * 2
    model = CallableModel(lambda prompt: replies[int(prompt.split("passage-")[1][0])], samples=False)
    passages = [Passage(f"passage-{i}", source=f"s{i}.example") for i in range(5)]
    answer = ConsensusAggregation(model).answer("Is it open?", passages)
    assert [group.status for group in answer.groups] == ["supports"] * 3 + ["partial"] * 2
    assert any("2 say the answer with a negation" in warning for warning in answer.warnings)
    one = ConsensusAggregation(model).answer("Is it open?", passages[:4])
    assert not any("negation" in warning for warning in one.warnings)


def test_what_could_not_be_stopped_is_said_and_who_did_not_win_is_denied() -> None:
    assert not denies("The building burned; the fire could not be stopped.", "fire")
    assert denies("Anna Berg did not win.", "Anna Berg")
    assert denies("The fire was not the cause.", "fire")
