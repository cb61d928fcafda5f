"""`prime` in the synthesizer: one call before the groups, with no node in it."""

from __future__ import annotations

import pytest

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from robustrag_integrations import CallableModel

CHUNKS = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "It is Anna Lind's mill."]


@pytest.mark.parametrize("synchronous", [True, False], ids=["sync", "async"])
async def test_one_call_goes_before_the_groups(synchronous: bool) -> None:
    prompts: list[str] = []

    def fn(prompt: str) -> str:
        prompts.append(prompt)
        return "Anna Lind"

    synthesizer = RobustRAGSynthesizer(
        llm=CallableModel(fn), calls=CallOptions(prime=1), aggregation="keyword", final="always"
    )
    if synchronous:
        text = synthesizer.get_response("Who runs the mill?", CHUNKS)
    else:
        text = await synthesizer.aget_response("Who runs the mill?", CHUNKS)
    assert str(text) == "Anna Lind"
    assert not any(chunk in prompts[0] for chunk in CHUNKS)
    assert len(prompts) == 1 + 3 + 1
