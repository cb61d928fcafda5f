"""Consensus aggregation from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.defenses.consensus.certificate import ANY_KEY


def defense(replies: Sequence[str], **settings: Any) -> tuple[ConsensusAggregation, list[str]]:
    def model(prompt: str) -> str:
        return next(reply for i, reply in enumerate(replies) if f"passage {i}." in prompt)

    return ConsensusAggregation(CallableModel(model), **settings), [f"passage {i}." for i in range(len(replies))]


def answer_of(replies: Sequence[str], **settings: Any) -> RobustAnswer:
    made, passages = defense(replies, **settings)
    return made.answer("Who won?", passages)


PROSE = [
    "Karl Gross won the election.",
    "According to the article, the winner was Karl Gross.",
    "It was Karl Gross of the SPD.",
    "The passage says that Karl Gross won in 2019.",
    "Karl Gross",
    "Karl Gross, the mayor.",
    "Mr. Karl Gross became mayor.",
    "I think Karl Gross.",
]


EXACT = {"Karl Gross"}  # the others say more


def test_prose_gives_a_short_answer_in_the_groups_own_words() -> None:
    answer = answer_of([*PROSE, "Hans Wolf", "Hans Wolf"])
    assert (answer.text, answer.radius, answer.model_calls) == ("Karl Gross", 2, 10)
    assert [g.status for g in answer.groups] == ["supports" if reply in EXACT else "mentions" for reply in PROSE] + [
        "differs"
    ] * 2
    assert len(answer.citations) == len(EXACT)
    assert answer.defense == "consensus"
    assert "2 of 10 answering groups say otherwise: 'Hans Wolf'" in " ".join(answer.warnings)


def test_streams_and_async_say_the_same() -> None:
    made, passages = defense([*PROSE, "Hans Wolf"])
    stream = made.stream("Who won?", passages)
    assert "".join(stream) == "Karl Gross" == stream.answer.text
    assert stream.answer == made.answer("Who won?", passages)


async def test_it_answers_without_blocking_the_loop() -> None:
    made, passages = defense(PROSE)
    assert (await made.aanswer("Who won?", passages)).text == "Karl Gross"


def test_four_of_ten_that_lie_do_not_enter_the_answer() -> None:
    answer = answer_of([*PROSE[:6], *["Hans Wolf"] * 4])
    assert (answer.text, answer.radius) == ("Karl Gross", 1)  # of words that as many say the first counts: "gross"
    assert answer_of([*PROSE[:5], *["Hans Wolf"] * 5]).text == "Karl Gross"
    assert answer_of([*PROSE[:4], *["Hans Wolf"] * 6]).text == "Hans Wolf"
    last = answer_of([*PROSE[:6], *["Abe Wolf"] * 4])
    assert (last.text, last.radius) == ("Karl Gross", 0)


def test_two_that_differ_make_no_answer() -> None:
    answer = answer_of(["Hans Wolf", "Karl Gross"])
    assert (answer.text, answer.abstained, answer.radius) == ("I don't know", True, 0)
    assert any("no answer is given by 2 groups (min_support)" in w for w in answer.warnings)


def test_items_in_another_order_are_a_list() -> None:
    orders = ["copper, tin and iron", "iron, copper, tin", "tin, iron, copper", "tin and copper, also iron"]
    answer = answer_of(orders)
    assert answer.text == "copper, iron, tin"


def test_code_is_shown_to_the_letter() -> None:
    assert answer_of(["Use getUserById.", "`getUserById`", "The function is getUserById", "deleteUser"]).text == (
        "getUserById"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.4}, r"share=0.4 must lie in \[0.5, 1\)"),
        ({"share": 1}, r"share=1 must lie in \[0.5, 1\)"),
        ({"share": "much"}, r"share='much' must lie in \[0.5, 1\)"),
        ({"min_support": 0}, "min_support=0 must be a whole number"),
        ({"min_support": True}, "min_support=True"),
        ({"task": "multiple_choice"}, "consensus does 'short_answer'"),
    ],
)
def test_invalid_settings_are_named_with_their_fix(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        defense([], **settings)


def test_certificates_need_no_call_beyond_the_isolated_ones() -> None:
    made, passages = defense([*PROSE, "Karl Gross", "Karl Gross"])
    small, large = made.certify("Who won?", passages, ["Karl Gross"], corruption_size=[2, 5])
    assert (small.tau, small.certified, small.model_calls) == (1.0, True, 8)
    assert (large.tau, large.unbounded) == (0.0, True)
    assert large.stopped is not None
    assert ANY_KEY in large.stopped


def test_a_huge_hostile_response_costs_its_own_group_alone() -> None:
    noise = " ".join(f"word{i}" for i in range(3000))
    answer = answer_of([*PROSE, noise])
    assert answer.text == "Karl Gross"
    assert answer.radius == 2


@pytest.mark.parametrize(
    "said",
    [
        "-5 °C",
        "\u221240 °F",
        "-$5 million",
        "-€300",
        "-33.86, 151.21",
        "-5 degrees",
        "5 EUR",
        "5 €",
        "five miles",
        "twenty percent",
        "3 000",
        "≤5",
        "A\u2212",
        "Das kostet 12,50 €",
        "Cuesta 20 euros",
        "Es kostet -12,50 €",
        "Es sind 7,25 %",
        "O-",
        "UTC+5",
        "C++",
        "< 10",
        ">= 2.7, < 4.1",
        "18+",
        "2:00:35",
        "₽500",
        "-₺5",
        "0170 1234567",
        "DE89 3704 0044 0532 0130 00",
    ],
)
def test_an_amount_keeps_its_sign_and_its_unit(said: str) -> None:
    answer = ConsensusAggregation(CallableModel(lambda prompt: said)).answer(
        "How much?", [f"text {i}" for i in range(5)]
    )
    assert answer.text == said
    assert {group.status for group in answer.groups} == {"supports"}


def test_a_sharp_s_is_shown_as_the_groups_write_it() -> None:
    assert answer_of(["Gießen", "Gießen.", "Es ist Gießen", "Meißen"]).text == "Gießen"


def test_a_group_that_says_what_the_answer_denies_does_not_support_it() -> None:
    replies = ["Parking is allowed."] * 3 + ["Parking is not allowed."] * 7
    model = CallableModel(lambda prompt: next(reply for i, reply in enumerate(replies) if f"text {i}." in prompt))
    answer = ConsensusAggregation(model).answer("Is parking allowed?", [f"text {i}." for i in range(10)])
    assert answer.text == "Parking is not allowed"
    assert [group.status for group in answer.groups] == ["differs"] * 3 + ["supports"] * 7
