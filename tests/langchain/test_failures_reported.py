"""A report comes out of every call: also when too few groups could be asked, or the output parser fails."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import BaseOutputParser, BaseTransformOutputParser

from langchain_robustrag import create_robust_documents_chain
from robustrag_integrations import CallableModel, KeywordAggregation, QuorumError, RobustAnswer
from tests.langchain.fakes import PROMPT, QUESTION, Reader, Recorder, truthful
from tests.langchain.test_traps import called

GIVEN = {"input": QUESTION, "context": truthful()}
STYLES = ["invoke", "ainvoke", "stream", "astream"]


class Strict(BaseOutputParser[str]):
    def parse(self, text: str) -> str:
        raise OutputParserException(f"no JSON in {text}")


class Hasty(BaseTransformOutputParser[str]):
    def parse(self, text: str) -> str:
        raise OutputParserException("stops at the first piece")


def down(prompt: str) -> str:
    raise ConnectionError("down")


@pytest.mark.parametrize("style", STYLES)
async def test_a_missed_quorum_is_reported_and_carried(style: str) -> None:
    recorder = Recorder()
    with pytest.raises(QuorumError) as caught:
        await called(
            create_robust_documents_chain(Reader(answer=down), PROMPT, aggregation="keyword", final="always"),
            style,
            {"callbacks": [recorder]},
        )
    report = caught.value.robustness
    assert isinstance(report, RobustAnswer)
    assert (report.abstained, report.radius, report.defense, report.query) == (True, 0, "keyword", QUESTION)
    assert [g.status for g in report.groups] == ["failed"] * 5
    assert "only 0 of 5 groups" in report.warnings[0]
    [(name, data)] = recorder.events
    assert (name, data) == ("robustrag_report", report.to_dict())


@pytest.mark.parametrize("parser", [Strict(), Hasty()], ids=["strict", "hasty"])
@pytest.mark.parametrize("style", STYLES)
async def test_a_parser_that_fails_leaves_the_report(style: str, parser: Any) -> None:
    recorder = Recorder()
    chain = create_robust_documents_chain(Reader(), PROMPT, output_parser=parser, aggregation="keyword", final="always")
    with pytest.raises(OutputParserException) as caught:
        await called(chain, style, {"callbacks": [recorder]})
    assert caught.value.robustness.text == "It is Paris indeed"  # type: ignore[attr-defined]
    [(_, data)] = recorder.events
    assert data["text"] == "It is Paris indeed"


def test_the_core_carries_it_too() -> None:
    with pytest.raises(QuorumError) as caught:
        KeywordAggregation(CallableModel(down, attempts=1)).answer("Who?", ["a", "b"])
    assert [g.status for g in caught.value.robustness.groups] == ["failed", "failed"]
    assert caught.value.robustness.to_dict()["abstained"]


@pytest.mark.parametrize("style", STYLES)
async def test_that_nobody_gets_warnings_is_logged_once(style: str, caplog: pytest.LogCaptureFixture) -> None:
    async def answer_from_one_source(chain: Any, config: Any = None) -> None:
        made = getattr(chain, style)({"input": QUESTION, "context": truthful()[:1]}, config)
        if style == "ainvoke":
            await made
        elif style == "stream":
            list(made)
        elif style == "astream":
            [_ async for _ in made]

    chain = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always")
    await answer_from_one_source(
        create_robust_documents_chain(Reader(), PROMPT, return_robustness=True, aggregation="keyword", final="always")
    )
    await answer_from_one_source(chain, {"callbacks": [Recorder()]})
    assert not caplog.records
    for _ in range(2):
        await answer_from_one_source(chain)
    [logged] = [record.getMessage() for record in caplog.records if record.name == "langchain_robustrag.runnable"]
    assert "radius 0 and 2 warnings, but nothing receives the report. Set return_robustness=True" in logged
