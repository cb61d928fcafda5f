"""The three text defences around a model that repeats hostile passages."""

from __future__ import annotations

import re

from robustrag_integrations import ConsensusAggregation, KeywordAggregation, MajorityVoting, Passage
from robustrag_integrations.text.prompts import PromptSet, PromptTemplate
from tests.fuzz.checks import assert_harmless_on_a_terminal, assert_json
from tests.fuzz.hostile import ANSWERS, NUMBERS, OTHER_CASE, name, text
from tests.fuzz.source import Source, Target
from tests.helpers.scripted import ScriptedModel

_WORD = re.compile(r"\S+")
_PROMPTS = PromptSet(
    isolated=PromptTemplate("", "{context}", ("context",)),
    no_retrieval=PromptTemplate("", "{query}", ("query",)),
    keyword=PromptTemplate("", "{keywords}|{query}", ("keywords", "query")),
)
_VOTES = PromptSet(isolated=PromptTemplate("", "{context}", ("context",)), no_retrieval=_PROMPTS.no_retrieval)


def _words(response: str) -> set[str]:
    return set(_WORD.findall(response[:5000]))


def _passages(source: Source) -> list[Passage]:
    shared = text(source, 3)
    return [
        Passage(
            source.pick((shared, shared, text(source, 4), "")),
            id=name(source) if source.chance(2) else None,
            origin=source.pick((None, "s", name(source))),
        )
        for _ in range(source.below(7))
    ]


def _question(source: Source) -> str:
    return text(source, 3).strip() or "Who?"


def keyword_answers(source: Source) -> None:
    """The final prompt holds the question and the keywords that enough sources share, and nothing else."""
    model = ScriptedModel(lambda said: said)
    defense = KeywordAggregation(
        model,
        extractor=_words,
        prompts=_PROMPTS,
        final="always",
        alpha=source.pick((0.0, 0.3, 1)),
        beta=source.between(1, 4),
        group_by=source.pick((None, "source")),
    )
    query, passages = _question(source), _passages(source)
    answer = defense.answer(query, passages)
    finals = [prompt for role, prompt in model.asked if role == "final"]
    retained = answer.evidence["retained"]
    assert finals == ([f"{', '.join(retained)}|{query}"] if retained else [])
    assert 0 <= answer.radius <= len(answer.sources)
    _check(answer)
    assert "".join(defense.stream(query, passages)) == answer.text


def votes(source: Source) -> None:
    """The winner is one of the options, or None."""
    choices = ["Paris", "Lyon", "I"]
    defense = MajorityVoting(ScriptedModel(lambda said: said), prompts=_VOTES)
    answer = defense.answer(_question(source), _passages(source), choices=choices)
    assert answer.abstained == (answer.choice is None)
    assert answer.choice is None or answer.text == choices[answer.choice]
    _check(answer)


def one_liar(source: Source) -> None:
    """One hostile reply among six does not change an answer of radius 1, whichever words the others share with it."""
    shared = source.pick((*NUMBERS, *ANSWERS, "Anna Lind", text(source, 3, 300)))
    lie = text(source, 4, 300)
    planted = source.pick((lie, f"{shared} {lie}", f"{lie} {shared}", f"{shared}, {source.pick(NUMBERS)}"))
    if source.chance(4):
        planted = planted.translate(OTHER_CASE)
    method = source.pick((ConsensusAggregation, KeywordAggregation))
    defense = method(ScriptedModel(lambda said: said), prompts=_PROMPTS, group_by="passage")
    clean = defense.answer("Who?", [shared] * 6)
    attacked = defense.answer("Who?", [*[shared] * 5, planted])
    assert not clean.radius or attacked.text == clean.text
    _check(attacked)


def _check(answer) -> None:
    assert_harmless_on_a_terminal(answer.explain())
    assert_json(answer.to_dict())


TARGETS = (Target("keyword-answers", keyword_answers, 1), Target("one-liar", one_liar, 1), Target("votes", votes, 3))
