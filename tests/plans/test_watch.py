"""What is logged and traced of every answer, whichever way it was asked for; and what must never be."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation
from tests.helpers.scripted import BARE, ScriptedModel

SECRETS = ("passage-secret", "query-secret", "reply-secret", "error-secret")
QUERY = "query-secret?"
PASSAGES = ["passage-secret 0", "passage-secret 1", "passage-secret 2", "passage-secret 3", "odd", "broken"]


def say(text: str) -> str | None:
    if text == "broken":
        return None
    return "other-words" if text == "odd" else "reply-secret"


def defense(**settings: Any) -> KeywordAggregation:
    return KeywordAggregation(
        ScriptedModel(say), extractor=lambda t: set(t.split()), prompts=BARE, alpha=0.5, **settings
    )


def whole(made: KeywordAggregation) -> None:
    made.answer(QUERY, PASSAGES)


def awaited(made: KeywordAggregation) -> None:
    asyncio.run(made.aanswer(QUERY, PASSAGES))


def streamed(made: KeywordAggregation) -> None:
    list(made.stream(QUERY, PASSAGES))


def astreamed(made: KeywordAggregation) -> None:
    async def take() -> None:
        async for _ in made.astream(QUERY, PASSAGES):
            pass

    asyncio.run(take())


WAYS = [whole, awaited, streamed, astreamed]


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_logged_once_in_numbers(way: Callable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="robustrag_integrations"):
        way(defense())
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert len(logged) == 1
    assert "method=keyword sources=6 radius=1 abstained=False failed=1 differs=1 model_calls=7" in logged[0]
    assert "1 of 6 sources failed" in caplog.text
    assert not any(secret in caplog.text for secret in SECRETS)


def test_opentelemetry_is_neither_needed_nor_imported_by_the_package() -> None:
    code = (
        "import sys\n"
        "import robustrag_integrations as r\n"
        "assert not any(m.startswith('opentelemetry') for m in sys.modules)\n"
        "sys.modules['opentelemetry'] = None\n"
        "made = r.KeywordAggregation(r.CallableModel(lambda p: 'a'), extractor=set)\n"
        "print(*made.stream('q', ['x'] * 5), made.answer('q', ['x'] * 5).text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a a"


class Recorded:
    """The spans that the SDK has received since `clear`."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        trace.set_tracer_provider(provider)

    @property
    def spans(self) -> dict[str, Any]:
        return {s.name: s for s in self.exporter.get_finished_spans()}

    @property
    def everything(self) -> str:
        return "".join(s.to_json() for s in self.exporter.get_finished_spans())


@pytest.fixture(scope="session")
def sdk() -> Recorded:
    pytest.importorskip("opentelemetry.sdk", reason="the SDK of OpenTelemetry is not installed")
    return Recorded()


@pytest.fixture
def recorded(sdk: Recorded) -> Recorded:
    sdk.exporter.clear()
    return sdk


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_a_span_with_its_calls_below_and_no_text(way: Callable, recorded: Recorded) -> None:
    way(defense())
    spans = recorded.spans
    root = spans.pop("robustrag.answer")
    assert set(spans) == {"robustrag.isolated_calls", "robustrag.final_call"}
    assert {s.parent.span_id for s in spans.values()} == {root.context.span_id}
    assert root.attributes["robustrag.method"] == "keyword"
    assert (root.attributes["robustrag.radius"], root.attributes["robustrag.failed"]) == (1, 1)
    assert not any(secret in recorded.everything for secret in SECRETS)


def test_a_failure_names_the_errors_type_and_not_its_words(recorded: Recorded) -> None:
    def fail(text: str) -> str:
        raise RuntimeError("error-secret")

    with pytest.raises(RuntimeError):
        KeywordAggregation(ScriptedModel(fail), extractor=set, prompts=BARE).answer(QUERY, PASSAGES)
    for name in ("robustrag.answer", "robustrag.isolated_calls"):
        assert recorded.spans[name].attributes["error.type"] == "RuntimeError"
        assert not recorded.spans[name].status.is_ok
    assert not any(secret in recorded.everything for secret in SECRETS)


def test_a_stream_that_is_closed_early_is_cancelled_and_no_failure(recorded: Recorded) -> None:
    pieces = defense().stream(QUERY, PASSAGES)
    next(pieces)
    pieces.close()
    root = recorded.spans["robustrag.answer"]
    assert root.attributes["robustrag.cancelled"] is True
    assert root.status.is_unset
