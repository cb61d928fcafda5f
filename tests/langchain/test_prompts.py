"""The plan's own prompts are what LangChain is asked: passage text goes down once, as a value."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForChainRun
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

from langchain_robustrag.calls import LangChainModel
from langchain_robustrag.prompts import FilledTemplate, FormattedTemplate
from robustrag_integrations.models.limits import CallLimits
from robustrag_integrations.prompts import Prompt
from tests.langchain.fakes import Reader, Recorder

HOSTILE = "{input} {0} {{context}} %s $x {% raw %} ${{ secret }} \\u007b"


def template(kind: type[FilledTemplate] = FilledTemplate) -> FilledTemplate:
    asked = ChatPromptTemplate.from_template("T: {docs} Q: {query} {tone}")
    return kind("", "{context}", ("context",), template=asked, inputs={"tone": "{short}"}, slot="docs")


def bound(answers: Any) -> tuple[LangChainModel, Recorder]:
    recorder = Recorder()
    manager = CallbackManagerForChainRun(run_id=uuid.uuid4(), handlers=[recorder], inheritable_handlers=[recorder])
    return LangChainModel(Reader(answer=answers), CallLimits(4), 3, {}, manager), recorder


def test_group_i_is_asked_the_plans_ith_prompt() -> None:
    model, recorder = bound(lambda prompt: prompt)
    prompts = tuple(template().render(context=text, query="who?") for text in ("b", "a", HOSTILE))
    said = model.generate(prompts, "isolated")
    for response, text in zip(said, ("b", "a", HOSTILE), strict=True):
        assert response.text.endswith(f"T: {text} Q: who? {{short}}")
    assert {run["name"] for run in recorder.named("group:")} == {"group:0", "group:1", "group:2"}


def test_what_passages_reach_is_marked_and_the_rest_is_not() -> None:
    prompt = template().render(context=HOSTILE, query="who?")
    assert prompt.context is not None
    assert prompt.text[slice(*prompt.context)] == HOSTILE == prompt.text


def test_a_local_models_prompt_is_text_that_knows_where_its_passages_stand() -> None:
    prompt = template(FormattedTemplate).render(context=HOSTILE, query="who?")
    assert type(prompt) is Prompt
    assert prompt.context is not None
    assert prompt.text[slice(*prompt.context)] == HOSTILE
    assert prompt.text.endswith(" Q: who? {short}")


def test_a_request_stands_behind_the_passages_and_never_in_their_span() -> None:
    asked = ChatPromptTemplate.from_template("Q: {query} T: {docs}")
    for kind in (FilledTemplate, FormattedTemplate):
        made = kind("", "{context}", ("context",), template=asked, inputs={}, slot="docs", request="Be short.")
        prompt = made.render(context=HOSTILE, query="who?")
        assert prompt.context is not None
        assert prompt.text[slice(*prompt.context)] == HOSTILE
    assert prompt.text == f"Q: who? T: {HOSTILE}\n\nBe short."
    assert prompt.without_context().text == "Q: who? T: \n\nBe short."


def test_a_template_that_shows_passages_twice_is_refused_for_local_models() -> None:
    twice = PromptTemplate.from_template("{context} {context}")
    shown = FormattedTemplate("", "{context}", ("context",), template=twice, inputs={}, slot="context")
    with pytest.raises(ValueError, match=r"must show \{context\} once"):
        shown.render(context="a", query="q")


def test_a_prompt_of_the_cores_own_is_asked_as_it_is() -> None:
    model, _ = bound(lambda prompt: prompt)
    [said] = model.generate([Prompt(HOSTILE)], "isolated")
    assert said.text.endswith(HOSTILE)
