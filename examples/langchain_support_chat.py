"""A support chat: a manual that decides, uploads that are asked where it is silent, history, streaming, and sources.

    pip install '.[langchain-agents,local]' langchain-huggingface
    python examples/langchain_support_chat.py
    OPENAI_BASE_URL=http://localhost:8000/v1 python examples/langchain_support_chat.py openai:NAME

Without a model's name it runs offline: the bundled reader, and its small world in the place of a manual. With one it
reads the product pages of `examples/handbook`, and the uploads there. The graph's checkpointer keeps each thread. What
is stored of an answer may go into prompts: no history ever holds what one planted page tells alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_library import WordEmbeddings, library, planted, questions, reader
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from langchain_robustrag import create_robust_node, for_prompts

HANDBOOK = Path(__file__).parent / "handbook"
CONDENSE = ChatPromptTemplate.from_messages(
    [
        ("system", "Rewrite the last question so that it is understood without the conversation. Reply with it alone."),
        MessagesPlaceholder("messages"),
    ]
)


class Chat(TypedDict):
    """The graph's state."""

    messages: Annotated[list[AnyMessage], add_messages]
    standalone_question: str
    trusted_context: list[Document]
    context: list[Document]
    robustness: dict[str, Any]


def chat_of(llm: Any, manual: BaseRetriever, uploads: BaseRetriever, condense: Runnable[Any, str] | None = None) -> Any:
    """Return the chat as a graph; `condense` makes of a conversation its last question as it stands alone."""
    condensing = (condense or CONDENSE | llm | StrOutputParser()).with_config(tags=["nostream"])

    def retrieve(state: Chat, config: RunnableConfig) -> dict[str, Any]:
        said = for_prompts(state["messages"])
        question = str(said[0].text) if len(said) == 1 else condensing.invoke({"messages": said}, config)
        found = {"trusted_context": manual.invoke(question, config), "context": uploads.invoke(question, config)}
        return {"standalone_question": question, **found}

    graph = StateGraph(Chat)
    graph.add_node("retrieve", retrieve)
    graph.add_node("answer", create_robust_node(llm, answer_key="messages"))
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    return graph.compile(checkpointer=InMemorySaver())


def ask(chat: Any, question: str, thread: str) -> Iterator[str]:
    """Yield the answer as it comes, and then where it stands."""
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    for chunk, told in chat.stream({"messages": [HumanMessage(question)]}, config, stream_mode="messages"):
        if told["langgraph_node"] == "answer":
            yield chunk.text
    report = chat.get_state(config).values["messages"][-1].additional_kwargs["robustness"]
    yield f"\n  sources: {', '.join(report['origins']) or 'none'}; decided by: {report['decided_by']}"


def shelves(*shelves: list[Document]) -> list[BaseRetriever]:
    """Return a retriever for each shelf, of its ten best documents."""
    embeddings = WordEmbeddings([document.page_content for shelf in shelves for document in shelf])
    stores = [InMemoryVectorStore.from_documents(shelf, embeddings) for shelf in shelves]
    return [store.as_retriever(search_kwargs={"k": 10}) for store in stores]


def pages(folder: Path) -> list[Document]:
    """Return the files of a folder, whose names are their sources."""
    return [Document(path.read_text("utf-8"), metadata={"source": path.name}) for path in sorted(folder.iterdir())]


def main(model: str | None = None) -> None:
    """Ask twice in one thread."""
    if model is None:
        row = questions()[0]
        asked = [row["question"], "And are you sure?"]
        found = shelves(library(), [planted(row["question"], row["incorrect"])])
        same: Runnable[Any, str] = RunnableLambda(lambda said: str(said["messages"][0].text))  # it cannot condense
        chat = chat_of(reader(), *found, condense=same)
    else:
        from langchain.chat_models import init_chat_model

        asked = ["How long is the warranty of the Rill 2?", "And what does it cost?", "What does the canteen plan?"]
        llm = init_chat_model(model, temperature=0)
        chat = chat_of(llm, *shelves(pages(HANDBOOK / "documents" / "products"), pages(HANDBOOK / "uploads")))
    for question in asked:
        print(question, end="\n  ")
        for piece in ask(chat, question, "ann"):
            print(piece, end="", flush=True)
        print()


if __name__ == "__main__":
    main(*sys.argv[1:2])
