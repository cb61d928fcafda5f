"""`prime` in chains: one run before the groups, with the user's own messages and no document."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from langchain_robustrag import CallOptions, create_robust_documents_chain
from tests.langchain.fakes import PROMPT, QUESTION, Reader, read

DOCUMENTS = [Document(page_content=f"The capital of France is Paris. ({i})") for i in range(4)]
GIVEN = {"input": QUESTION, "context": DOCUMENTS}


@pytest.mark.parametrize("prompt", [PROMPT, None], ids=["own prompt", "the project's"])
@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream"])
async def test_one_run_goes_before_the_groups_and_changes_nothing(prompt: object, style: str) -> None:
    llm = Reader(answer=read)
    chain = create_robust_documents_chain(
        llm, prompt, calls=CallOptions(prime=1), return_robustness=True, aggregation="keyword", final="always"
    )  # type: ignore[arg-type]
    if style == "invoke":
        result = chain.invoke(GIVEN)
    elif style == "ainvoke":
        result = await chain.ainvoke(GIVEN)
    else:
        result = [part for part in chain.stream(GIVEN) if "robustness" in part][-1]
    report = result["robustness"]
    assert "capital of France is Paris" not in llm.prompts[0]
    assert QUESTION in llm.prompts[0]
    assert sum("capital of France is Paris" in p for p in llm.prompts) == 4
    plain = create_robust_documents_chain(
        Reader(answer=read), prompt, return_robustness=True, aggregation="keyword", final="always"
    ).invoke(GIVEN)  # type: ignore[arg-type]
    assert report.text == plain["robustness"].text
    assert report.radius == plain["robustness"].radius
    assert report.spending.calls == plain["robustness"].spending.calls + 1
