"""Events, spans and callbacks: those of the base class, and every call inside the synthesis that made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import LLMPredictEndEvent, LLMPredictStartEvent
from llama_index.core.instrumentation.events.synthesis import GetResponseStartEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.response_synthesizers import get_response_synthesizer

from llamaindex_robustrag import RobustRAGSynthesizer
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


CALLS = ("complete", "chat", "achat")


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
async def test_every_call_is_a_child_of_the_one_synthesis_span(
    traced: tuple[Events, SimpleSpanHandler], style: str, llm_class: type[FactReader]
) -> None:
    _, spans = traced
    given = getattr(RobustRAGSynthesizer(llm=llm_class()), style)(QUESTION, nodes_of(truthful(4)))
    if style == "asynthesize":
        await given
    names = named(spans)
    [root] = [i for i, name in names.items() if name == f"RobustRAGSynthesizer.{style}"]
    calls = [s for s in spans.completed_spans if names[s.id_].split(".")[-1] in CALLS]
    tops = [s for s in calls if names.get(s.parent_id, "").split(".")[-1] not in CALLS]
    assert len(tops) == 4
    assert {s.parent_id for s in tops} == {root}


KINDS = ("SynthesizeStart", "GetResponseStart", "LLMPredictStart", "LLMPredictEnd", "GetResponseEnd", "SynthesizeEnd")


@pytest.mark.parametrize("style", ["synthesize", "asynthesize"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_one_response_and_one_prediction_are_sent_as_stock_sends_them(
    traced: tuple[Events, SimpleSpanHandler], style: str, streaming: bool
) -> None:
    events, sent, texts = traced[0], [], truthful(3)
    for kind in (get_response_synthesizer, RobustRAGSynthesizer):
        events.found.clear()
        given: Any = getattr(kind(llm=AsyncFactReader(), streaming=streaming), style)(QUESTION, nodes_of(texts))
        response = await given if style == "asynthesize" else given
        if streaming and style == "asynthesize":
            assert "".join([piece async for piece in response.async_response_gen()]) == "Paris"
        assert str(response) == "Paris"
        own = [event for event in events.found if type(event).__name__.removesuffix("Event") in KINDS]
        names = [type(event).__name__ for event in own]
        sent.append(sorted(names) if streaming else names)  # when a stream is begun differs between versions
    assert sent[0] == sent[1]
    [started] = [event for event in own if isinstance(event, GetResponseStartEvent)]
    assert (started.query_str, started.text_chunks) == (QUESTION, texts)
    [predicts] = [event for event in own if isinstance(event, LLMPredictStartEvent)]
    prompt = predicts.template.format(**predicts.template_args)
    assert all(text in prompt for text in (*texts, QUESTION))
    assert [e.output for e in own if isinstance(e, LLMPredictEndEvent)] == ["Paris"] * (not streaming)
