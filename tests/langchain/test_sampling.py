"""What holds when a LangChain model samples: in the report and in the event of every call, in every factory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from langchain_robustrag import (
    CallOptions,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
)
from robustrag_integrations.answers.determinism import PREMISES
from robustrag_integrations.defenses.registry import METHODS
from tests.defenses.toy import UNANIMITY
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, truthful

INPUT = {"input": QUESTION, "context": truthful(5)}


class Warm(Reader):
    temperature: float = 0.7


def report(llm: Any, **settings: Any) -> Any:
    chain = create_robust_documents_chain(
        llm, PROMPT, return_robustness=True, **{"aggregation": "keyword", "final": "always", **settings}
    )
    return chain.invoke(INPUT)["robustness"]


def test_the_report_says_what_holds_of_a_run_that_was_drawn() -> None:
    answer = report(Warm(), alpha=0.5)
    assert answer.radius > 0
    assert (answer.determinism.model, answer.determinism.scope) == ("samples", "final_prompt")
    assert "0.7" in answer.determinism.why
    assert "the keywords that this run kept" in answer.determinism.promise
    assert answer.determinism.premises == PREMISES
    assert json.loads(json.dumps(answer.to_dict()))["determinism"]["scope"] == "final_prompt"


def test_sampling_can_be_accepted_so_that_no_answer_warns_of_it() -> None:
    assert any("the model samples" in w for w in report(Warm()).warnings)
    accepted = report(Warm(), calls=CallOptions(accept_sampling=True))
    assert not any("the model samples" in w for w in accepted.warnings)
    assert accepted.determinism.acknowledged
    assert accepted.determinism.promise == report(Warm()).determinism.promise


async def test_it_is_the_same_in_every_way_of_calling() -> None:
    chain = create_robust_documents_chain(Warm(), PROMPT, return_robustness=True, aggregation="keyword", final="always")
    whole = [chain.invoke(INPUT), await chain.ainvoke(INPUT)]
    found = [answer["robustness"] for answer in whole]
    found += [piece["robustness"] for piece in chain.stream(INPUT) if "robustness" in piece]
    found += [piece["robustness"] async for piece in chain.astream(INPUT) if "robustness" in piece]
    assert len(found) == 4
    assert len({a.determinism for a in found}) == 1


def test_other_factories_take_the_setting() -> None:
    rag = create_robust_retrieval_chain(
        ListRetriever(documents=truthful(5)),
        Warm(),
        PROMPT,
        calls=CallOptions(accept_sampling=True),
        aggregation="keyword",
        final="always",
    )
    assert rag.invoke({"input": QUESTION})["robustness"].determinism.acknowledged
    node = create_robust_node(
        Warm(), PROMPT, calls=CallOptions(accept_sampling=True), aggregation="keyword", final="always"
    )
    assert node.invoke(INPUT)["robustness"]["determinism"]["acknowledged"]


def test_a_method_that_states_its_own_promise_is_read_and_one_that_does_not_promises_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METHODS, "toy", UNANIMITY)
    chain = create_robust_documents_chain(Warm(), PROMPT, aggregation="toy", return_robustness=True)
    assert chain.invoke(INPUT)["robustness"].determinism.promise == "nothing is promised: the radius is 0"
