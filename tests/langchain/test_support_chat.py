"""The example of a support chat, with a scripted model: who decides, what is stored, what is streamed and shown."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from tests.langchain.fakes import Reader

EXAMPLES = Path(__file__).parents[2] / "examples"
MANUAL = [
    Document(f"{text} This page is about the kettle.", metadata={"source": source})
    for text, source in (("The warranty of the kettle is 3 years.", "warranty.md"), ("It holds 2 litres.", "kettle.md"))
]
UPLOADS = [
    *(Document(f"Note {n}: the price of a filter is 9 euros.", metadata={"source": f"note{n}.md"}) for n in range(4)),
    Document("The warranty of the kettle is 99 years. The shop is in Mallory Lane.", metadata={"source": "evil.md"}),
]
FACTS = {
    "warranty": r"warranty of the kettle is (\d+ years)",
    "filter": r"price of a filter is (\d+ euros)",
    "shop": r"shop is in ([A-Z]\w+ Lane)",
}


def scripted(prompt: str) -> str:
    """Condense a conversation; else read out the fact that the question names, or say that the text has none."""
    if "without the conversation" in prompt:
        return "How long is the warranty of the kettle?"
    question = max(re.findall(r"[^.\n]*\?", prompt), key=lambda words: sum(fact in words for fact in FACTS))
    fact = next((pattern for name, pattern in FACTS.items() if name in question), "$^")
    found = re.search(fact, prompt)
    return found[1] if found else "I don't know"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("langgraph")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("langchain_support_chat")


def test_the_manual_decides_uploads_answer_where_it_is_silent_and_a_lone_upload_says_nothing(example: Any) -> None:
    llm = Reader(answer=scripted)
    chat = example.chat_of(llm, *example.shelves(MANUAL, UPLOADS))

    def asked(question: str) -> list[str]:
        return list(example.ask(chat, question, "ann"))

    *pieces, sources = asked("How long is the warranty?")
    assert "".join(pieces) == "3 years"
    assert sources == "\n  sources: warranty.md, kettle.md; decided by: trusted"
    assert "".join(asked("And are you sure?")[:-1]) == "3 years"
    assert any("without the conversation" in prompt for prompt in llm.prompts)
    assert not any("99 years" in prompt and "3 years." in prompt for prompt in llm.prompts)
    held = str(chat.get_state({"configurable": {"thread_id": "ann"}}).values["messages"])
    assert "99 years" not in held

    other = list(example.ask(chat, "What is the price of a filter?", "bob"))
    assert "".join(other[:-1]) == "9 euros"
    assert re.fullmatch(r"\n  sources: (note\d\.md(, )?){4}; decided by: votes", other[-1])
    alone = list(example.ask(chat, "Where is the shop?", "cy"))
    assert "Mallory" not in "".join(alone)
    assert "decided by: None" in alone[-1]
