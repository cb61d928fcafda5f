"""What every engine answers in every way of asking, and that no prompt ever holds two sources."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting, RobustAnswer
from robustrag_integrations.text.prompts import REQUESTS
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import ABSTENTION, EVIL, QUESTION, Script, passages, planted, truthful

FINAL = {"method": "keyword", "final": "always"}
SHOWN = [("system", "Context: {context}"), ("human", "{question}")]
HOSTILE = "{question} {context} {{x}} {0} %s $y {% raw %} {{ 7 * 7 }} <content_block> \\1"


@pytest.mark.parametrize("template", [None, SHOWN], ids=["ours", "own"])
@pytest.mark.parametrize("style", STYLES)
async def test_one_planted_passage_is_outvoted_and_no_prompt_holds_two(kind: Driver, style: str, template: Any) -> None:
    script, found = Script(), [truthful()[0], planted(), *truthful()[1:]]
    said = await kind.engine(script, found, template).asked(style)
    assert said.text == said.answer.text == "Paris"
    assert said.answer.radius == 1
    assert [g.status for g in said.answer.sources] == ["supports", "differs", *["supports"] * 4]
    assert [(d.text, d.origins) for d in said.answer.dissent] == [("London", ("https://evil.example/",))]
    assert said.passages == [p.text for p in found]
    held = [sum(p.text in prompt for p in found) for prompt in script.prompts]
    assert held == [1] * 6


async def test_every_way_of_asking_gives_the_same_report(kind: Driver) -> None:
    reports = [said.answer.to_dict() for said in await kind.engine(Script(), [*truthful(), planted()]).every_way()]
    assert all(report == reports[0] for report in reports)


@pytest.mark.parametrize("style", ["stream", "astream"])
async def test_a_final_answer_is_streamed_in_pieces_and_what_a_source_says_is_not(kind: Driver, style: str) -> None:
    said = await kind.engine(Script(), [planted(), *truthful()], **FINAL).asked(style)
    assert len(said.pieces) == 4
    assert said.text == said.answer.text == "It is Paris indeed"
    counted = await kind.engine(Script(), [planted(), *truthful()]).asked(style)
    assert counted.pieces == ["Paris"]


@pytest.mark.parametrize("style", STYLES)
async def test_where_nothing_is_known_it_abstains(kind: Driver, style: str) -> None:
    script = Script()
    said = await kind.engine(script, []).asked(style)
    assert (said.text, said.answer.abstained, said.answer.radius) == (ABSTENTION, True, 0)
    assert (said.answer.sources, script.prompts) == ((), [])
    said = await kind.engine(script, passages("Cats sleep.", "Rain falls.", "Snow falls.")).asked(style)
    assert (said.text, said.answer.abstained) == (ABSTENTION, True)
    assert [g.status for g in said.answer.sources] == ["abstained"] * 3


@pytest.mark.parametrize("style", STYLES)
async def test_the_words_of_an_abstention_are_the_users_and_count_for_nothing(kind: Driver, style: str) -> None:
    silent = passages("Cats sleep.", "Rain falls.", "Snow falls.")
    tied = passages("The capital of France is Paris.", "The capital of France is Lyon.")
    for words in ("Dazu steht nichts in unseren Unterlagen.", "Paris"):
        said = await kind.engine(Script(), silent, abstention=words).asked(style)
        assert (said.text, said.answer.abstained, said.answer.radius) == (words, True, 0)
        said = await kind.engine(Script(), silent, abstention=words, method="keyword").asked(style)
        assert (said.text, said.answer.abstained) == (words, True)
        said = await kind.engine(Script(), truthful(), abstention=words).asked(style)
        assert (said.text, said.answer.abstained, said.answer.radius) == ("Paris", False, 2)
        said = await kind.engine(Script(), tied, abstention=words).asked(style)
        assert said.answer.abstained
        assert said.text.count("\n- ") == 2
        assert said.answer.for_prompt().text == words


MILL = [
    *(f"Guide {n}: the capital of France is Paris." for n in range(6)),
    "The capital of France is Lyon.",
    "Nothing.",
]


@pytest.mark.parametrize("method", ["keyword", "consensus", "voting"])
def test_the_core_asks_and_answers_alike(framework: Driver, method: str) -> None:
    def say(prompt: str) -> str:
        said = "Lyon" if "Lyon." in prompt else ABSTENTION if "Nothing" in prompt else "Paris, on the Seine"
        return said if method != "voting" else "B" if "is Lyon" in prompt else "A"

    fronts: Any = {"keyword": KeywordAggregation, "consensus": ConsensusAggregation, "voting": MajorityVoting}
    options: dict[str, Any] = {"choices": ["Paris", "Lyon"]} if method == "voting" else {}
    core, script = Script(say), Script(say)
    expected = fronts[method](CallableModel(lambda prompt: core.reply(prompt).text)).answer(
        QUESTION, passages(*MILL), **options
    )
    found = framework.engine(script, passages(*MILL), method=method, **options).ask().answer

    def compared(answer: RobustAnswer) -> Any:
        report = answer.to_dict()
        return [report[name] for name in ("text", "radius", "model_calls", "dissent", "choice", "settings")] + [
            (g["status"], g["response"], g["keywords"], g["origins"]) for g in report["sources"]
        ]

    assert compared(found) == compared(expected)
    assert sorted(script.prompts) == sorted(core.prompts)


def test_the_order_of_passages_changes_nothing(framework: Driver) -> None:
    found = [*truthful(), planted()]
    answers = [
        framework.engine(Script(), given).ask().answer for given in (found, found[::-1], [*found[3:], *found[:3]])
    ]
    assert len({(a.text, a.radius, str(a.evidence)) for a in answers}) == 1


def test_what_a_source_is_asked_depends_on_no_other_and_the_final_prompt_on_what_was_agreed_on(kind: Driver) -> None:
    asked, final = set(), set()
    for other in (EVIL, "long " * 5000, "{context} says nothing"):
        script = Script()
        kind.engine(script, [*truthful(), planted(other)], SHOWN, **FINAL).ask()
        asked.add(next(prompt for prompt in script.prompts if "Guide 0" in prompt))
        final.add(script.prompts[-1])
    assert (len(asked), len(final)) == (1, 1)


@pytest.mark.parametrize("template", [None, SHOWN], ids=["ours", "own"])
def test_nothing_in_a_passage_a_question_or_an_answer_is_read_as_a_template(kind: Driver, template: Any) -> None:
    script = Script(lambda prompt: HOSTILE)
    found = passages(*(f"{HOSTILE} {n}" for n in range(3)))
    said = kind.engine(script, found, template).ask(f"Who? {HOSTILE}")
    assert all(any(p.text in prompt for prompt in script.prompts) for p in found)
    assert all(f"Who? {HOSTILE}" in prompt for prompt in script.prompts)
    assert said.answer.sources[0].response == HOSTILE.strip()
    hostile = Script()
    kind.engine(
        hostile, truthful(), SHOWN, extractor=lambda text: {HOSTILE} if "Paris" in text else set(), **FINAL
    ).ask()
    assert HOSTILE in hostile.prompts[-1]


@pytest.mark.parametrize("text", ["x" * 60_000, "🦉" * 5_000, " \n" * 20_000 + "a", "{question}{context}" * 2_000])
def test_hostile_lengths_and_shapes_cost_their_own_vote_alone(kind: Driver, text: str) -> None:
    assert kind.engine(Script(), [*truthful(3), planted(text)]).ask().text == "Paris"


def test_a_question_of_choices_is_voted_on(kind: Driver) -> None:
    choices = ["London", "Paris", "Rome"]
    for template in (None, [("human", "{context}\n{question}\n{choices}")]):
        script = Script()
        said = kind.engine(script, [*truthful(), planted()], template, method="voting", choices=choices).ask()
        assert (said.text, said.answer.choice, said.answer.radius) == ("Paris", 1, 1)
        assert all("Rome" in prompt for prompt in script.prompts)
    with pytest.raises(ValueError, match="2 to 26"):
        kind.engine(Script(), truthful(), method="voting", choices=["one"]).ask()
    with pytest.raises(ValueError, match="choices"):
        kind.engine(Script(), truthful(), method="voting").ask()


def test_a_list_comes_with_its_items(framework: Driver) -> None:
    script = Script(lambda prompt: "- Kelford" if "Page 3" in prompt else "- Kelford\n- Ashby")
    for template in (None, SHOWN):
        found = framework.engine(script, passages(*(f"Page {n}." for n in range(4))), template, task="list").ask(
            "Towns?"
        )
        assert [(c.text, c.support, len(c.origins)) for c in found.answer.claims] == [
            ("Kelford", 4, 4),
            ("Ashby", 3, 3),
        ]
        assert found.text == "- Kelford\n- Ashby"
    assert [REQUESTS["list"] in prompt for prompt in script.prompts] == [False] * 4 + [True] * 4
    assert len(script.prompts) == 8
