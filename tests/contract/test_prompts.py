"""With a prompt of the user's, sources are asked for a short answer; keywords and objects take one more call."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from robustrag_integrations.text.prompts import REQUESTS
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import ABSTENTION, Script, quoted, replies, truthful

ASKED = "How long can a badge be returned?"
OWN = [("system", "You are a helper of Halden. {context}"), ("human", "Hello."), ("ai", "Hi."), ("human", "{question}")]
DAYS = replies("30 days", "30 days.", "30 days", "14 days")


def lines(prompt: str) -> list[str]:
    """The messages of a prompt without the roles that models of texts get."""
    roles = ("System: ", "Human: ", "AI: ", "system: ", "user: ", "assistant: ")
    found = [next((line[len(r) :] for r in roles if line.startswith(r)), line) for line in prompt.split("\n")]
    return [line for line in found if line]


def test_every_source_is_asked_all_messages_with_a_request_at_the_end_and_the_answer_is_shown(kind: Driver) -> None:
    script = Script(quoted)
    said = kind.engine(script, DAYS, OWN).ask(ASKED)
    talk = ["Hello.", "Hi.", ASKED]
    assert sorted(map(lines, script.prompts)) == sorted(
        [f"You are a helper of Halden. {p.text}", *talk, REQUESTS["short_answer"]] for p in DAYS
    )
    assert (said.text, said.answer.radius, said.answer.model_calls) == ("30 days", 0, 4)


@pytest.mark.parametrize("example", ['Reply as {{"answer": "..."}}.', "Be brief."])
def test_a_prompt_that_asks_for_json_names_the_argument_for_objects(framework: Driver, example: str) -> None:
    said = framework.engine(Script(quoted), DAYS, [("human", "{context} {question} " + example)]).ask(ASKED)
    assert any("output_" in warning for warning in said.answer.warnings) == ("answer" in example)


@pytest.mark.parametrize(
    ("template", "options"),
    [
        (None, {}),
        (OWN, {"method": "keyword", "final": "never"}),
        (OWN, {"method": "voting", "choices": ["30 days", "14 days"]}),
    ],
    ids=["ours", "keyword", "voting"],
)
def test_prompts_of_ours_and_other_methods_get_nothing_added(kind: Driver, template: Any, options: Any) -> None:
    script = Script(quoted)
    kind.engine(script, DAYS, template, **options).ask(ASKED)
    assert len(script.prompts) == 4
    assert not any(REQUESTS["short_answer"] in prompt.rpartition(ASKED)[2] for prompt in script.prompts)
    if template:
        assert all(lines(prompt)[-1] == ASKED for prompt in script.prompts)


@pytest.mark.parametrize("style", STYLES)
async def test_another_model_may_write_the_end(framework: Driver, style: str) -> None:
    reader, writer = Script(), Script(lambda prompt: "Paris it is")
    engine = framework.engine(reader, truthful(), final_llm=writer, method="keyword", final="always")
    assert ((await engine.asked(style)).text, len(reader.prompts), len(writer.prompts)) == ("Paris it is", 5, 1)


def test_what_has_no_final_call_is_told_so(framework: Driver) -> None:
    for method in ({}, {"task": "list"}, {"method": "voting", "choices": ["a", "b"]}):
        with pytest.raises(ValueError, match="final_llm"):
            framework.engine(Script(), [], final_llm=Script(), **method)


def test_keywords_stand_where_the_passages_stood(kind: Driver) -> None:
    script = Script()
    kind.engine(script, truthful(), OWN, method="keyword", final="always").ask()
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
@pytest.mark.parametrize("said", ['{"days": 30, "certain": true}', 'Sure!\n```json\n{"said": "A month."}\n```'])
async def test_an_object_is_made_of_the_agreed_answer_and_the_question_alone(
    kind: Driver, said: str, template: Any
) -> None:
    script = filled(said)
    for style in ("ask", "aask"):
        found = await kind.engine(script, DAYS, template, schema=Term).asked(style, ASKED)
        [made] = found.pieces
        assert isinstance(made, Term)
        assert (found.answer.evidence["agreed"], found.answer.model_calls) == ("30 days", 5)
    assert not any("schema" in prompt for prompt in [*script.prompts[:4], *script.prompts[5:9]])
    assert "badge" in script.prompts[4]
    assert not any(p.text in script.prompts[4] for p in DAYS)


@pytest.mark.parametrize("style", STYLES)
async def test_a_call_that_makes_no_object_is_an_abstention(framework: Driver, style: str) -> None:
    def say(prompt: str) -> str:
        if "schema" in prompt:
            raise RuntimeError("the server is gone")
        return quoted(prompt)

    said = await framework.engine(Script(say), DAYS, schema=Term).asked(style, ASKED)
    assert said.answer.abstained
    assert "the server is gone" in said.answer.warnings[-1]


def test_where_nothing_is_agreed_on_there_is_no_object(framework: Driver) -> None:
    script = filled('{"days": 30}')
    [made] = framework.engine(script, replies("30 days", "14 days"), schema=Term).ask(ASKED).pieces
    assert (bool(made), str(made)) == (False, "The sources say:\n- a.pdf: 30 days\n- b.pdf: 14 days")
    withheld = framework.engine(script, replies("30 days", "14 days"), schema=Term, reader="model").ask(ASKED)
    assert str(withheld.pieces[0]) == ABSTENTION
    assert not any("schema" in prompt for prompt in script.prompts)
    for method in ({"method": "voting", "choices": ["a", "b"]}, {"task": "list"}):
        with pytest.raises(ValueError, match=r"output_(schema|cls)"):
            framework.engine(script, [], schema=Term, **method)
