"""What comes back with an answer: sources that support it, marks in its text, a report that can be stored and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from robustrag_integrations import RobustAnswer
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import QUESTION, Script, planted, truthful

POISONED = [truthful()[0], planted(), *truthful()[1:]]
HONEST = [p.text for p in truthful()]
METHODS = pytest.mark.parametrize("method", [{}, {"method": "keyword", "final": "always"}], ids=["counted", "final"])


@METHODS
@pytest.mark.parametrize("style", STYLES)
async def test_citations_are_places_among_the_sources_that_come_back(
    framework: Driver, style: str, method: Any
) -> None:
    said = await framework.engine(Script(), POISONED, **method).asked(style)
    assert said.passages == [p.text for p in POISONED]
    assert [said.passages[at] for c in said.answer.citations for at in c.positions] == HONEST
    assert [c.origins for c in said.answer.citations] == [(p.origin,) for p in truthful()]
    assert said.answer.sources[1].status == "differs"


@METHODS
@pytest.mark.parametrize("style", STYLES)
async def test_markers_are_the_same_in_every_way_of_asking(framework: Driver, style: str, method: Any) -> None:
    said = await framework.engine(Script(), POISONED, citation_markers=True, **method).asked(style)
    assert said.text == said.answer.marked_text
    assert said.text.startswith("It is Paris [1]" if method else "Paris [1][2][3]")
    assert said.answer.text == ("It is Paris indeed" if method else "Paris")


def test_supporting_sources_leave_out_what_was_outvoted(framework: Driver) -> None:
    engine = framework.engine(Script(), POISONED)
    answer = engine.ask().answer
    items = engine.made.retriever.invoke("q") if framework.name == "langchain" else engine.made.retriever.retrieve("q")
    texts = [found.page_content if framework.name == "langchain" else found.node.text for found in items]
    assert answer.supporting(texts) == RobustAnswer.from_dict(answer.to_dict()).supporting(texts) == HONEST
    with pytest.raises(ValueError, match="give all of them"):
        answer.supporting(items[:2])


def test_a_report_can_be_stored_and_shown_in_a_line(framework: Driver) -> None:
    answer = framework.engine(Script(), POISONED).ask().answer
    assert RobustAnswer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
    assert (answer.query, answer.method) == (QUESTION, "consensus")
    assert repr(answer).startswith("RobustAnswer('Paris', radius=1 of 6 sources, citations=5")
    assert "\x1b" not in repr(RobustAnswer("a\x1b[2J\u202eb", 0, False, "q", "mine"))


@pytest.mark.parametrize("name", ["model", "final_llm"])
def test_what_is_no_model_is_refused(framework: Driver, name: str) -> None:
    given: dict[str, Any] = {"model": Script(), "method": "keyword", "final": "always", name: 5}
    with pytest.raises(TypeError, match=r"llm must be a .*5"):
        framework.engine(given.pop("model"), [], **given)
