"""Inside frameworks the same calls are compared: both sides ask the model as often."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("torch")
pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from benchmarks.frameworks import langchain, llamaindex


@pytest.mark.parametrize("pairs", [langchain, llamaindex])
@pytest.mark.parametrize(("method", "calls"), [("keyword", 11), ("consensus", 10), ("voting", 10)])
def test_both_sides_ask_the_model_as_often(pairs, method: str, calls: int) -> None:
    for pair in pairs(method):
        pair.instant.replies = ["It is Bo Ek."] * 11
        for work in (pair.ours, pair.theirs):
            before, made = pair.instant.asked, work()
            if asyncio.iscoroutine(made):
                asyncio.run(made)
            assert pair.instant.asked - before == calls, pair.name
