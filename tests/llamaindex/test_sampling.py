"""What holds when a LlamaIndex LLM samples: in the metadata of every response, whole or streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from robustrag_integrations import CallableModel
from robustrag_integrations.answers.determinism import PREMISES
from tests.llamaindex.fakes import FactReader, nodes_of, truthful
from tests.llamaindex.library import ASKED

NODES = nodes_of(truthful())


class Warm(FactReader):
    temperature: float = 0.7


def report(llm: Any, **settings: Any) -> dict[str, Any]:
    response = RobustRAGSynthesizer(llm=llm, **settings).synthesize(ASKED, NODES)
    if settings.get("streaming"):
        list(response.response_gen)
    return response.metadata["robustrag"]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_report_says_what_holds_of_a_run_that_was_drawn(streaming: bool) -> None:
    found = json.loads(json.dumps(report(Warm(), streaming=streaming, aggregation="keyword")))
    assert found["radius"] > 0
    assert (found["determinism"]["model"], found["determinism"]["scope"]) == ("samples", "final_prompt")
    assert "the keywords that this run kept" in found["determinism"]["promise"]
    assert found["determinism"]["premises"] == list(PREMISES)
    assert any("the model samples" in w for w in found["warnings"])


def test_an_answer_that_is_counted_alone_holds_in_this_run() -> None:
    assert report(Warm())["determinism"]["scope"] == "this_run"


def test_sampling_can_be_accepted_so_that_no_answer_warns_of_it() -> None:
    found = report(Warm(), calls=CallOptions(accept_sampling=True))
    assert not any("the model samples" in w for w in found["warnings"])
    assert found["determinism"]["acknowledged"]
    assert found["determinism"]["model"] == "samples"


def test_a_model_of_the_core_says_it_itself_and_carries_what_a_probe_found() -> None:
    model = CallableModel(lambda prompt: "Paris", samples=False, name="m")
    assert report(model)["determinism"]["scope"] == "every_run"
    model.probe = {"model": "m", "compared": 40, "differed": 2, "load": 8}
    probed = report(model)["determinism"]
    assert (probed["model"], probed["probe"]["differed"]) == ("samples", 2)
