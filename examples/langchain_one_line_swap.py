"""One changed line: the same retrieval chain, with and without a defence, while somebody plants a document.

    pip install '.[langchain-classic,local]' langchain-huggingface
    python examples/langchain_one_line_swap.py

Runs offline. With every answer goes a
report, here taken from the custom event: radius 0 says that one lying document may have decided.
"""

from __future__ import annotations

from typing import Any

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import PromptTemplate
from langchain_library import planted, questions, reader, retriever

from langchain_robustrag import REPORT_EVENT, create_robust_documents_chain
from robustrag_integrations import prompts_for

ASKED = questions()[:3]


class Reports(BaseCallbackHandler):
    """Remembers the last answer's report."""

    radius: int | None = None

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Take the radius out of the report."""
        if name == REPORT_EVENT:
            self.radius = data["radius"]


def main() -> None:
    """Ask three questions, to both chains."""
    llm = reader()
    attacked = retriever(*(planted(row["question"], row["incorrect"]) for row in ASKED))
    template = prompts_for("short_answer").isolated  # any prompt of your own that names {context} and {input}
    prompt = PromptTemplate.from_template(template.instruction + template.body.replace("{query}", "{input}"))

    plain = create_retrieval_chain(attacked, create_stuff_documents_chain(llm.bind(skip_prompt=True), prompt))
    robust = create_retrieval_chain(attacked, create_robust_documents_chain(llm))  # and your prompt

    for row in ASKED:
        print(f"{row['question']}   (truth: {row['answer']}; the planted document says: {row['incorrect']})")
        for name, chain in (("plain", plain), ("robust", robust)):
            reports = Reports()
            result = chain.invoke({"input": row["question"]}, {"callbacks": [reports]})
            assert isinstance(result["answer"], str)
            shown = "" if reports.radius is None else f"radius {reports.radius}"
            print(f"  {name:<7} {result['answer'].strip():<20} {shown}")


if __name__ == "__main__":
    main()
