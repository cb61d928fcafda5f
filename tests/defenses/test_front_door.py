"""Bad input gets a clear error or a documented behaviour; hostile input gets no special treatment."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import pytest

from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    KeywordAggregation,
    MajorityVoting,
    Passage,
    VanillaRAG,
    isolate,
)
from robustrag_integrations._util.settings import settings_in
from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.defenses.options import ConsensusOptions, DecodingOptions, KeywordOptions, VotingOptions
from robustrag_integrations.defenses.voting.options import check_choices, parse_option
from robustrag_integrations.text.prompts import Exemplar, PromptTemplate, prompts_for
from tests.helpers.scripted import BARE, ScriptedDecodingModel, ScriptedModel, split

ECHO = ScriptedModel(lambda text: text)


def keyword(**settings) -> KeywordAggregation:
    return KeywordAggregation(ECHO, **{"extractor": split, "prompts": BARE, **settings})


def uniform(text, prefix):
    return [0.7, 0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1.5}, r"alpha=1.5 must lie in \[0, 1\]"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"beta": 2.5}, "beta=2.5"),
        ({"passages_per_source": True}, "passages_per_source=True"),
        ({"passages_per_source": 2, "group_by": "source"}, "exclude each other"),
        ({"task": "multiple_choice"}, "use MajorityVoting"),
        ({"min_words": 0}, "min_words=0"),
        ({"abstention": " "}, "abstention is empty"),
        ({"abstention": ["none"]}, r"abstention=\['none'\] must be a text"),
        ({"abstention": "none\x1b[31m"}, "holds the control character"),
        ({"abstention": "none\u202e"}, "holds the control character"),
        ({"beta": 10**400}, "beta=1000"),
        (
            {"prompts": PromptTemplate("p", "{context} {query}", ("context", "query"))},
            "must be a PromptSet, got Prompt",
        ),
    ],
)
def test_keyword_settings_out_of_range_are_named(settings: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        keyword(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.1}, r"gamma=1.1 must lie in \[0, 1\]"),
        ({"eta": float("inf")}, "eta=inf"),
        ({"stop": "\n"}, "stop must be a list"),
        ({"task": "multiple_choice"}, "use MajorityVoting"),
    ],
)
def test_decoding_settings_out_of_range_are_named(settings: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        DecodingAggregation(ScriptedDecodingModel(uniform), **settings)


@pytest.mark.parametrize("query", ["", "   ", None, 3])
def test_a_query_must_be_text_with_something_in_it(query) -> None:
    with pytest.raises((TypeError, ValueError), match="query"):
        keyword().answer(query, ["a"])


@pytest.mark.parametrize("passages", ["one text", Passage("a"), b"bytes", {"a.txt": "Paris"}, None, 3])
def test_passages_are_a_list(passages) -> None:
    with pytest.raises(TypeError, match="passages must be a list"):
        keyword().answer("q", passages)


def test_a_passage_that_is_not_text_is_named_by_its_place() -> None:
    with pytest.raises(TypeError, match=r"passages\[1\] must be a str or a Passage, got int: 7"):
        keyword().answer("q", ["a", 7])
    with pytest.raises(TypeError, match="NoneType"):
        Passage(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "defense",
    [keyword(), DecodingAggregation(ScriptedDecodingModel(uniform), prompts=BARE), VanillaRAG(ECHO, prompts=BARE)],
)
@pytest.mark.parametrize("passages", [[], ["", "  \n"]])
def test_nothing_to_read_is_an_abstention_without_a_radius(defense, passages) -> None:
    answer = defense.answer("q", passages)
    assert (answer.text, answer.radius, answer.abstained) == ("I don't know", 0, True)
    assert "".join(defense.stream("q", passages)) == answer.text


def test_sources_are_adjacent_passages_and_the_last_may_be_smaller() -> None:
    sources = isolate(["a", "b", "c", "d", "e"], passages_per_source=2)
    assert [[p.text for p in g.passages] for g in sources] == [["a", "b"], ["c", "d"], ["e"]]
    by_length = isolate(["aa", "b", "cc", "d"], by=lambda p: len(p.text))
    assert [g.text for g in by_length] == ["aa\n\ncc", "b\n\nd"]


def test_long_form_asks_for_phrases_and_drops_single_words() -> None:
    model = ScriptedModel(lambda text: "born in 1871, engineer")
    defense = KeywordAggregation(model, task="long_form", extractor=lambda t: set(t.split(", ")))
    answer = defense.answer("Tell me about Brevik.", ["x"] * 5)
    assert "short phrases" in model.asked[0][1]
    assert answer.evidence["retained"] == ["born in 1871"]
    more = KeywordAggregation(model, task="long_form", extractor=lambda t: set(t.split(", ")), min_words=1)
    assert "engineer" in more.answer("Tell me.", ["x"] * 5).evidence["retained"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (None, "needs choices"),
        ("AB", "list of str"),
        (["one"], "2 to 26"),
        ([str(i) for i in range(27)], "2 to 26"),
        (["a", " "], r"choices\[1\] is empty"),
        (["Paris", "paris "], "are the same"),
        (["a", 3], "list of str"),
    ],
)
def test_bad_choices_are_named(choices, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        MajorityVoting(ECHO).answer("q", ["x"], choices=choices)
    with pytest.raises(ValueError, match="use MajorityVoting"):
        keyword().answer("q", ["x"], choices=["a", "b"])


@pytest.mark.parametrize(
    ("response", "choices", "expected"),
    [
        ("not allowed", ["Allowed", "Forbidden"], None),
        ("It is not Rome.", ["Rome", "Oslo"], None),
        ("Nein, nicht erlaubt.", ["Erlaubt", "Verboten"], None),
        ("There is no doubt that it is Rome.", ["Rome", "Oslo"], None),
        ("It is Oslo, not Rome.", ["Rome", "Oslo"], None),
        ("Let me see. The answer is no.", ["Yes", "No"], None),
        ("It is not allowed.", ["Allowed", "Not allowed"], None),
        ("-5 °C", ["5 °C", "7 °C"], None),
        ("It is \u22125 °C.", ["5 °C", "-5 °C"], None),
        ("It costs $ 5.", ["€5", "$5"], None),
        ("5 %", ["5", "5%"], None),
        ("C++", ["Java", "C++"], 1),
        ("-", ["+", "-"], 1),
    ],
)
def test_an_option_that_is_denied_or_has_another_sign_is_not_voted_for(
    response: str, choices: list[str], expected: int | None
) -> None:
    assert parse_option(response, check_choices(choices)) == expected


@pytest.mark.parametrize(
    ("choices", "whose"),
    [(["O", "A", "B", "AB"], r"choices\[0\]"), (["b", "x"], r"choices\[1\]"), (["C", "C++"], "no information")],
)
def test_an_option_that_reads_like_another_ones_letter_is_refused(choices: list[str], whose: str) -> None:
    with pytest.raises(ValueError, match=rf"reads like the letter of {whose} in a reply. Write it out"):
        MajorityVoting(ECHO, options="letters").answer("q", ["x"], choices=choices)
    assert MajorityVoting(ECHO).answer("q", [choices[0]], choices=choices).choice == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("no fields", r"lacks \{context\}, \{query\}"),
        ("{context} {query} {extra}", r"unknown placeholders \{extra\}"),
        ("{context} {query", "unbalanced"),
        ("{context} {context} {query}", "twice"),
    ],
)
def test_prompts_of_the_users_are_checked(body: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PromptTemplate("", body, ("context", "query"))


def test_prompts_keep_literal_braces_and_show_exemplars_before_the_question() -> None:
    template = PromptTemplate("Do. ", "{{json}} {context}? {query}", ("context", "query"))
    shown = template.with_exemplars([Exemplar({"context": "c", "query": "q"}, "yes")])
    prompt = shown.render(context="{x}", query="{y}")
    assert prompt.text == "Do. {json} c? q yes\n\n{json} {x}? {y}"
    assert prompt.context is not None
    assert prompt.text[slice(*prompt.context)] == "{x}"


@pytest.mark.parametrize("task", ["short_answer", "multiple_choice", "long_form"])
def test_a_prompt_shows_as_many_worked_examples_as_asked_for_and_every_second_one_abstains(task) -> None:
    for count in range(5):
        prompts = prompts_for(task, exemplars=count)
        for template in filter(None, (prompts.isolated, prompts.phrases)):
            assert len(template.exemplars) == count
            no = "No information found" if task == "multiple_choice" else "I don't know"
            assert [e.answer == no for e in template.exemplars] == [False, True, False, True][:count]
    assert prompts_for(task, exemplars=True) == prompts_for(task, exemplars=2)
    for wrong in (5, -1, 1.0, "1", None):
        with pytest.raises(ValueError, match="from 0 to 4"):
            prompts_for(task, exemplars=wrong)  # type: ignore[arg-type]


def test_decoding_reports_where_a_source_would_have_gone_another_way() -> None:
    def rows(text, prefix):
        path = {"good": [1, 2, 0], "evil": [1, 3, 0], "": [0, 0, 0]}[text]
        return [1.0 if t == path[len(prefix)] else 0.0 for t in range(4)]

    answer = DecodingAggregation(ScriptedDecodingModel(rows), prompts=BARE).answer("q", ["good"] * 4 + ["evil"])
    assert (answer.text, answer.radius) == ("ab", 1)
    assert answer.sources[4].status == "differs"
    assert answer.sources[4].response == "ac …"


@pytest.mark.parametrize("method", [KeywordAggregation, ConsensusAggregation, MajorityVoting])
def test_an_argument_that_a_method_does_not_have_is_named_with_the_nearest(method: Any) -> None:
    with pytest.raises(TypeError, match=r"unknown argument .quorun.; did you mean quorum"):
        method(CallableModel(str), quorun=0.2)
    takes = rf"unknown argument 'xyz'; {method.method.name} takes (?=.*passages_per_source).*quorum"
    with pytest.raises(TypeError, match=takes):
        method(CallableModel(str), xyz=1)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (ConsensusAggregation, ConsensusOptions),
        (KeywordAggregation, KeywordOptions),
        (MajorityVoting, VotingOptions),
        (DecodingAggregation, DecodingOptions),
    ],
)
def test_a_signature_and_its_types_name_every_argument_with_the_settings_default(method: Any, options: Any) -> None:
    shown = inspect.signature(method).parameters
    assert shown.keys() - {"model", "final_model"} == typing.get_type_hints(options).keys()
    for setting in settings_in(method.settings_type):
        assert shown[setting.name].default == setting.default
