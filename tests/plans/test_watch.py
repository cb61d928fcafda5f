"""What is logged and traced of every answer, whichever way it was asked for; and what must never be."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation, MajorityVoting, QuorumError
from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.plans import watch
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel

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


# Logging


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_logged_once_in_numbers(way: Callable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="robustrag_integrations"):
        way(defense())
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert len(logged) == 1
    assert "defense=keyword groups=6 radius=1 abstained=False failed=1 differs=1 model_calls=7" in logged[0]
    assert "1 of 6 groups failed" in caplog.text
    assert {r.name for r in caplog.records} == {"robustrag_integrations.plans.watch"}
    assert not any(secret in caplog.text for secret in SECRETS)


def test_no_answer_is_logged_with_the_type_of_the_error_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="robustrag_integrations"), pytest.raises(QuorumError):
        defense(quorum=1.0).answer(QUERY, PASSAGES)
    assert "no answer: QuorumError" in caplog.text
    assert not any(secret in caplog.text for secret in SECRETS)


def test_nothing_is_printed_by_a_program_that_has_not_set_up_logging() -> None:
    code = (
        "import robustrag_integrations as r\n"
        "r.KeywordAggregation(r.CallableModel(lambda p: 1 / 0), quorum=0.0, extractor=set).answer('q', ['x', 'y'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "groups failed" not in done.stderr
    assert "QuorumError" in done.stderr  # at least one group must have been asked


# Without OpenTelemetry


def test_without_opentelemetry_requests_and_pieces_go_straight_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_spans", lambda: None)
    pieces = iter(["a"])
    with watch.Watch("answer") as watched:
        assert watched.pieces(pieces) is pieces
    for way in WAYS:
        way(defense())


def test_opentelemetry_is_neither_needed_nor_imported_by_the_package() -> None:
    code = (
        "import sys\n"
        "import robustrag_integrations as r\n"
        "assert not any(m.startswith('opentelemetry') for m in sys.modules)\n"
        "sys.modules['opentelemetry'] = None\n"
        "print(r.KeywordAggregation(r.CallableModel(lambda p: 'a'), extractor=set).answer('q', ['x'] * 5).text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a"


# With OpenTelemetry


class Recorded:
    """What the SDK has received since `clear`."""

    def __init__(self) -> None:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider([self._reader]))
        self._before: dict[str, float] = {}

    def clear(self) -> None:
        self._exporter.clear()
        self._before = self._totals()

    @property
    def spans(self) -> dict[str, Any]:
        return {s.name: s for s in self._exporter.get_finished_spans()}

    @property
    def everything(self) -> str:
        return "".join(s.to_json() for s in self._exporter.get_finished_spans())

    @property
    def counts(self) -> dict[str, float]:
        now = self._totals()
        return {k: v - self._before.get(k, 0) for k, v in now.items() if v != self._before.get(k, 0)}

    def _totals(self) -> dict[str, float]:
        data = self._reader.get_metrics_data()
        found: dict[str, float] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = metric.data.data_points
                    found[metric.name] = sum(p.value if hasattr(p, "value") else p.sum for p in points)
        return found


@pytest.fixture(scope="session")
def sdk() -> Recorded:
    pytest.importorskip("opentelemetry.sdk", reason="the SDK of OpenTelemetry is not installed")
    return Recorded()


@pytest.fixture
def recorded(sdk: Recorded) -> Recorded:
    sdk.clear()
    return sdk


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_a_span_with_its_parts_below_and_no_text(way: Callable, recorded: Recorded) -> None:
    way(defense())
    spans = recorded.spans
    assert set(spans) == {
        "robustrag.answer", "robustrag.isolated_calls", "robustrag.aggregation", "robustrag.final_call"
    }  # fmt: skip
    root = spans.pop("robustrag.answer")
    assert {s.parent.span_id for s in spans.values()} == {root.context.span_id}
    assert dict(root.attributes) == {
        "robustrag.defense": "keyword",
        "robustrag.groups": 6,
        "robustrag.radius": 1,
        "robustrag.abstained": False,
        "robustrag.failed": 1,
        "robustrag.differs": 1,
        "robustrag.model_calls": 7,
        "robustrag.warnings": 3,
    }
    assert dict(spans["robustrag.isolated_calls"].attributes) == {"robustrag.prompts": 6, "robustrag.failed": 1}
    assert not any(secret in recorded.everything for secret in SECRETS)


def test_answers_abstentions_failed_and_outvoted_groups_are_counted(recorded: Recorded) -> None:
    defense().answer(QUERY, PASSAGES)
    defense().answer(QUERY, [])
    with pytest.raises(QuorumError):
        defense(quorum=1.0).answer(QUERY, PASSAGES)
    assert recorded.counts == {
        "robustrag.answers": 2,
        "robustrag.abstentions": 1,
        "robustrag.failures": 1,
        "robustrag.groups.failed": 1,
        "robustrag.groups.differing": 1,
        "robustrag.radius": 1,
    }


def test_a_failure_names_the_errors_type_and_not_its_words(recorded: Recorded) -> None:
    def fail(text: str) -> str:
        raise RuntimeError("error-secret")

    broken = KeywordAggregation(ScriptedModel(fail), extractor=set, prompts=BARE)
    with pytest.raises(RuntimeError):
        broken.answer(QUERY, PASSAGES)
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
    assert "robustrag.failures" not in recorded.counts


def test_the_spans_of_model_clients_become_children_of_the_calls(recorded: Recorded) -> None:
    from opentelemetry import trace

    from robustrag_integrations import CallableModel

    def call(prompt: str) -> str:
        with trace.get_tracer("client").start_as_current_span("client call"):
            return "a"

    made = KeywordAggregation(CallableModel(call), extractor=set)
    for way in WAYS:
        recorded.clear()
        way(made)
        parents = {recorded.spans[n].context.span_id: n for n in recorded.spans}
        calls = [s for s in recorded._exporter.get_finished_spans() if s.name == "client call"]
        assert len(calls) == 7
        assert {parents[s.parent.span_id] for s in calls} == {"robustrag.isolated_calls", "robustrag.final_call"}


def test_votes_and_decoding_are_watched_as_well(recorded: Recorded) -> None:
    MajorityVoting(ScriptedModel(lambda text: "A"), prompts=BARE_CHOICES).answer("q", ["x"] * 3, choices=["a", "b"])
    assert recorded.spans["robustrag.answer"].attributes["robustrag.defense"] == "voting"
    recorded.clear()

    def rows(text: str, prefix: tuple[int, ...]) -> list[float]:
        return [0.0, 1.0, 0.0] if not prefix else [1.0, 0.0, 0.0]

    DecodingAggregation(ScriptedDecodingModel(rows), prompts=BARE).answer("q", ["x"] * 3)
    assert set(recorded.spans) == {"robustrag.answer", "robustrag.isolated_calls"}
    assert recorded.spans["robustrag.answer"].attributes["robustrag.radius"] == 1


def test_a_certification_says_what_was_proven(recorded: Recorded) -> None:
    defense().certify(QUERY, ["passage-secret"] * 6, "reply-secret")
    span = recorded.spans["robustrag.certification"]
    assert span.attributes["robustrag.tau"] == (1.0,)
    assert span.attributes["robustrag.corruption_sizes"] == (1,)
    assert not any(secret in recorded.everything for secret in SECRETS)


def test_langchain_answers_are_watched(recorded: Recorded) -> None:
    pytest.importorskip("langchain_core")
    from langchain_robustrag import create_robust_documents_chain
    from tests.langchain.fakes import PROMPT, QUESTION, Reader, truthful

    chain = create_robust_documents_chain(Reader(), PROMPT, extractor=lambda t: set(t.split()))
    inputs = {"input": QUESTION, "context": truthful(5)}
    chain.invoke(inputs)
    list(chain.stream(inputs))
    asyncio.run(chain.ainvoke(inputs))
    assert recorded.counts["robustrag.answers"] == 3
    assert recorded.spans["robustrag.answer"].attributes["robustrag.groups"] == 5


def test_llamaindex_answers_are_watched(recorded: Recorded) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    from llamaindex_robustrag import RobustRAGSynthesizer
    from tests.llamaindex.fakes import QUESTION, TRUE, FactReader

    synthesizer = RobustRAGSynthesizer(FactReader(), extractor=lambda t: set(t.split()))
    nodes = [NodeWithScore(node=TextNode(text=TRUE)) for _ in range(4)]
    synthesizer.synthesize(QUESTION, nodes)
    asyncio.run(synthesizer.asynthesize(QUESTION, nodes))
    assert recorded.counts["robustrag.answers"] == 2
    assert recorded.spans["robustrag.answer"].attributes["robustrag.groups"] == 4
