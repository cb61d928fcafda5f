"""Events, spans and callbacks: those of the base class, and every call inside the synthesis that made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.response_synthesizers import get_response_synthesizer

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, FactReader, nodes_of, truthful


class Events(BaseEventHandler):
    """Remembers events and the span that each was in."""

    found: list[Any] = []  # noqa: RUF012 - a pydantic field

    @classmethod
    def class_name(cls) -> str:
        return "Events"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.found.append(event)

    def counted(self) -> Counter[str]:
        return Counter(type(event).__name__ for event in self.found)


@pytest.fixture
def traced() -> Iterator[tuple[Events, SimpleSpanHandler]]:
    root, events, spans = get_dispatcher(), Events(found=[]), SimpleSpanHandler()
    handlers = list(root.event_handlers), list(root.span_handlers)
    root.add_event_handler(events)
    root.add_span_handler(spans)
    yield events, spans
    root.event_handlers, root.span_handlers = handlers


def named(spans: SimpleSpanHandler) -> dict[str, str]:
    return {span.id_: span.id_.rsplit("-", 5)[0] for span in spans.completed_spans}


@pytest.mark.parametrize("llm_class", [FactReader, AsyncFactReader])
@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
async def test_the_events_of_a_synthesis_are_those_of_the_base_class(
    traced: tuple[Events, SimpleSpanHandler], style: str, llm_class: type[FactReader]
) -> None:
    events, _ = traced
    found = []
    for synthesizer in (
        get_response_synthesizer(llm=llm_class(), response_mode="compact"),
        RobustRAGSynthesizer(llm=llm_class()),
    ):
        events.found.clear()
        given = getattr(synthesizer, style)(QUESTION, nodes_of(truthful(4)))
        response = await given if style == "asynthesize" else given
        start, end = (
            next(e for e in events.found if type(e).__name__ == f"Synthesize{w}Event") for w in ("Start", "End")
        )
        assert start.query == QUESTION
        assert end.response is response
        counted = events.counted()
        found.append((counted["SynthesizeStartEvent"], counted["SynthesizeEndEvent"]))
    assert found[0] == found[1] == (1, 1)
    assert counted["LLMCompletionStartEvent"] == counted["LLMCompletionEndEvent"] == 4


@pytest.mark.parametrize("llm_class", [FactReader, AsyncFactReader])
@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
async def test_every_call_is_a_child_of_the_one_synthesis_span(
    traced: tuple[Events, SimpleSpanHandler], style: str, llm_class: type[FactReader]
) -> None:
    _, spans = traced
    given = getattr(RobustRAGSynthesizer(llm=llm_class()), style)(QUESTION, nodes_of(truthful(4)))
    if style == "asynthesize":
        await given
    names = named(spans)
    [root] = [i for i, name in names.items() if name == f"RobustRAGSynthesizer.{style}"]
    calls = [s for s in spans.completed_spans if names[s.id_].split(".")[-1] in ("complete", "acomplete")]
    tops = [s for s in calls if names.get(s.parent_id, "").split(".")[-1] not in ("complete", "acomplete")]
    assert len(tops) == 4
    assert {s.parent_id for s in tops} == {root}


@pytest.mark.parametrize("count", [0, 4])
def test_a_stream_ends_its_synthesis_event_too(traced: tuple[Events, SimpleSpanHandler], count: int) -> None:
    events, _ = traced
    RobustRAGSynthesizer(llm=FactReader(), streaming=True).synthesize(QUESTION, nodes_of(truthful(count)))
    assert events.counted()["SynthesizeEndEvent"] == 1


@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
async def test_callbacks_of_the_synthesis_and_of_each_call_are_made(style: str) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    llm = FactReader(callback_manager=manager)
    given = getattr(RobustRAGSynthesizer(llm=llm, callback_manager=manager), style)(QUESTION, nodes_of(truthful(4)))
    response = await given if style == "asynthesize" else given
    [(start, end)] = debug.get_event_pairs(CBEventType.SYNTHESIZE)
    assert start.payload["query_str"] == QUESTION
    assert end.payload["response"] is response
    assert len(debug.get_event_pairs(CBEventType.LLM)) == 4


def test_a_failed_call_ends_its_callback_with_the_exception() -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    llm = FactReader(callback_manager=CallbackManager([debug]), fails_on="number 0")
    RobustRAGSynthesizer(llm=llm, calls=CallOptions(attempts=1)).synthesize(QUESTION, nodes_of(truthful(4)))
    starts, ends = len(debug.get_events(CBEventType.LLM)), len(debug.get_event_pairs(CBEventType.LLM))
    assert (starts, ends) == (8, 4)
