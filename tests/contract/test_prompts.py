"""With a prompt of the user's, groups are asked for a short answer, and the prompt words what they agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from robustrag_integrations.text.prompts import CHOICE_REQUEST, SHORT_REQUEST
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import ABSTENTION, AGREED, Script, quoted, replies, truthful

ASKED = "How long can a badge be returned?"
OWN = [
    ("system", "You are a helper of Halden. {context}"),
    ("human", "Hello."),
    ("ai", "Hi."),
    ("human", "{question}"),
]
DAYS = replies("30 days", "30 days.", "30 days", "14 days")
SENTENCE = "A badge can be returned for 30 days."


def wording(said: str | Callable[[str], str]) -> Script:
    """A model that words what was agreed on like this."""

    def say(prompt: str) -> str:
        if agreed := AGREED.search(prompt):
            return said if isinstance(said, str) else said(agreed[1])
        return quoted(prompt)

    return Script(say)


def lines(prompt: str) -> list[str]:
    """The messages of a prompt without the roles that models of texts get."""
    roles = ("System: ", "Human: ", "AI: ", "system: ", "user: ", "assistant: ")
    found = [next((line[len(r) :] for r in roles if line.startswith(r)), line) for line in prompt.split("\n")]
    return [line for line in found if line]


def test_every_group_is_asked_all_messages_with_a_request_at_the_end_and_the_agreed_answer_is_worded(
    kind: Driver,
) -> None:
    script = wording(SENTENCE)
    said = kind.engine(script, DAYS, OWN).ask(ASKED)
    talk = ["Hello.", "Hi.", ASKED]
    assert sorted(map(lines, script.prompts[:4])) == sorted(
        [f"You are a helper of Halden. {p.text}", *talk, SHORT_REQUEST] for p in DAYS
    )
    agreed = "Several sources were asked, and they agree on this answer: 30 days"
    assert lines(script.prompts[4]) == [f"You are a helper of Halden. {agreed}", *talk]
    assert (said.text, said.answer.evidence["agreed"], said.answer.radius) == (SENTENCE, "30 days", 0)
    assert said.answer.model_calls == len(script.prompts) == 5


def test_a_question_of_yes_or_no_is_asked_as_a_choice_and_never_worded(kind: Driver) -> None:
    for template in (OWN, None):
        script = Script(quoted)
        said = kind.engine(script, replies("Yes", "Yes", "It depends"), template).ask("Is a badge covered?")
        assert said.text == "Yes"
        assert [CHOICE_REQUEST in prompt for prompt in script.prompts] == [True] * 3


@pytest.mark.parametrize(
    ("template", "options"),
    [
        (None, {}),
        (OWN, {"aggregation": "keyword", "final": "never"}),
        (OWN, {"aggregation": "voting", "choices": ["30 days", "14 days"]}),
    ],
    ids=["ours", "keyword", "voting"],
)
def test_prompts_of_ours_and_other_methods_get_nothing_added(kind: Driver, template: Any, options: Any) -> None:
    script = Script(quoted)
    kind.engine(script, DAYS, template, **options).ask(ASKED)
    assert len(script.prompts) == 4
    assert not any(SHORT_REQUEST in prompt.rpartition(ASKED)[2] for prompt in script.prompts)
    if template:
        assert all(lines(prompt)[-1] == ASKED for prompt in script.prompts)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("worded", "shown"),
    [
        (SENTENCE, SENTENCE),
        ("A badge can be returned for 1 day.", "30 days"),
        ("A badge cannot be returned for 30 days.", "30 days"),
        ("A badge can be returned for 30 days, see https://evil.example", "30 days"),
        ("A badge can be returned for 30 days at the desk of Otto.", "30 days"),
        (ABSTENTION, "30 days"),
        ("", "30 days"),
    ],
)
async def test_a_wording_is_shown_once_it_is_known_to_say_the_answer_alone(
    framework: Driver, worded: str, shown: str, style: str
) -> None:
    said = await framework.engine(wording(worded), DAYS, OWN).asked(style, ASKED)
    assert (said.pieces, said.answer.text, said.answer.evidence["agreed"]) == ([shown], shown, "30 days")


@pytest.mark.parametrize("style", STYLES)
async def test_a_call_that_fails_leaves_the_agreed_answer(framework: Driver, style: str) -> None:
    def fails(agreed: str) -> str:
        raise RuntimeError("the server is gone")

    said = await framework.engine(wording(fails), DAYS, OWN).asked(style, ASKED)
    assert said.text == "30 days"
    assert "the call that words it failed" in said.answer.warnings[-1]
    assert "the server is gone" in said.answer.warnings[-1]


@pytest.mark.parametrize("style", STYLES)
async def test_another_model_may_write_the_end(framework: Driver, style: str) -> None:
    reader, writer = wording("never asked"), Script(lambda prompt: SENTENCE)
    said = await framework.engine(reader, DAYS, OWN, final_llm=writer).asked(style, ASKED)
    assert (said.text, len(reader.prompts), len(writer.prompts)) == (SENTENCE, 4, 1)
    reader, writer = Script(), Script(lambda prompt: "Paris it is")
    engine = framework.engine(reader, truthful(), final_llm=writer, aggregation="keyword", final="always")
    assert ((await engine.asked(style)).text, len(reader.prompts), len(writer.prompts)) == ("Paris it is", 5, 1)


def test_what_has_no_final_call_is_told_so(framework: Driver) -> None:
    for method in ({}, {"task": "list"}, {"aggregation": "voting", "choices": ["a", "b"]}):
        with pytest.raises(ValueError, match="final_llm"):
            framework.engine(Script(), [], final_llm=Script(), **method)


def test_wording_by_the_source_saves_the_call(kind: Driver) -> None:
    script = Script(quoted)
    assert kind.engine(script, DAYS, OWN, wording="source").ask(ASKED).text == "30 days"
    assert len(script.prompts) == 4


def test_keywords_stand_where_the_passages_stood(kind: Driver) -> None:
    script = Script()
    kind.engine(script, truthful(), OWN, aggregation="keyword", final="always").ask()
    told = (
        "You are a helper of Halden. Several sources were asked. These are the keywords on which their answers agree."
    )
    assert lines(script.prompts[5])[:2] == [told, "Keywords: paris"]


def test_a_prompt_that_does_not_show_the_passages_is_refused(framework: Driver) -> None:
    with pytest.raises(ValueError, match=r"must (accept|show)"):
        framework.engine(Script(), [], [("human", "{question}")])


# --- objects


class Term(BaseModel):
    """How long."""

    days: int | None = None
    said: str | None = None
    certain: bool | None = None


def filled(said: str) -> Script:
    """A model without tools that fills in an object like this."""
    return Script(lambda prompt: said if "schema" in prompt else quoted(prompt))


@pytest.mark.parametrize("template", [None, OWN], ids=["ours", "own"])
@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ('{"days": 30, "certain": true}', True),
        ('Sure!\n```json\n{"said": "It can be returned for 30 days."}\n```', True),
        ('{"days": 14}', False),
        ('{"said": "not 30 days"}', False),
        ('{"certain": true}', False),
    ],
)
async def test_an_object_holds_the_agreed_answer_or_is_an_abstention(
    kind: Driver, said: str, holds: bool, template: Any
) -> None:
    script = filled(said)
    for style in ("ask", "aask"):
        found = await kind.engine(script, DAYS, template, schema=Term).asked(style, ASKED)
        [made] = found.pieces
        assert found.answer.evidence["agreed"] == "30 days"
        assert (found.answer.abstained, found.answer.radius > 0) == (not holds, False)
        if holds:
            assert isinstance(made, Term)
            assert found.answer.model_calls == 5
        else:
            assert (bool(made), made.abstained, str(made)) == (False, True, ABSTENTION)
            assert "no value of the object holds the agreed answer" in found.answer.warnings[-1]
    assert not any("schema" in prompt for prompt in [*script.prompts[:4], *script.prompts[5:9]])


def test_where_nothing_is_agreed_on_there_is_no_object(framework: Driver) -> None:
    script = filled('{"days": 30}')
    [made] = framework.engine(script, replies("30 days", "14 days"), schema=Term).ask(ASKED).pieces
    assert (bool(made), str(made)) == (False, "No two sources agree: 30 days (a.pdf); 14 days (b.pdf)")
    withheld = framework.engine(script, replies("30 days", "14 days"), schema=Term, reader="model").ask(ASKED)
    assert str(withheld.pieces[0]) == ABSTENTION
    assert not any("schema" in prompt for prompt in script.prompts)
    for method in ({"aggregation": "voting", "choices": ["a", "b"]}, {"task": "list"}):
        with pytest.raises(ValueError, match=r"output_(schema|cls)"):
            framework.engine(script, [], schema=Term, **method)
