"""Streaming: the aggregated answer token by token, nothing of what single documents said, and the report at the end.

    pip install '.[langchain,local]' langchain-huggingface
    python examples/langchain_streaming.py

Runs offline.
"""

from __future__ import annotations

import asyncio

from langchain_library import planted, questions, reader, retriever

from langchain_robustrag import REPORT_EVENT, create_robust_documents_chain, create_robust_retrieval_chain
from robustrag_integrations import LocalModel, RobustAnswer

ROW = questions()[0]


def stream_with_report() -> None:
    """The retrieval chain: documents first, then pieces of the answer, the report last."""
    llm = LocalModel.bundled()
    attacked = retriever(planted(ROW["question"], ROW["incorrect"]))
    chain = create_robust_retrieval_chain(attacked, llm, group_by="source", method="decoding")
    report: RobustAnswer | None = None
    for chunk in chain.stream({"input": ROW["question"]}):
        if "context" in chunk:
            print(f"{len(chunk['context'])} documents\nAnswer: ", end="", flush=True)
        print(chunk.get("answer", ""), end="|" if "answer" in chunk else "", flush=True)
        report = chunk.get("robustness", report)
    assert report is not None
    print(f"\n\n{report.explain()}\n")


async def events_with_report() -> None:
    """The documents chain alone: its answer as events, and the report as the custom event."""
    documents = await retriever(planted(ROW["question"], ROW["incorrect"])).ainvoke(ROW["question"])
    chain = create_robust_documents_chain(reader(), group_by="source")
    async for event in chain.astream_events({"input": ROW["question"], "context": documents}, version="v2"):
        if event["event"] == "on_chain_stream" and not event["parent_ids"]:
            print(repr(event["data"]["chunk"]), end=" ", flush=True)
        if event["event"] == "on_custom_event" and event["name"] == REPORT_EVENT:
            print(f"\nradius {event['data']['radius']} over {len(event['data']['sources'])} sources")


if __name__ == "__main__":
    stream_with_report()
    asyncio.run(events_with_report())
