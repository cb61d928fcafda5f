"""What snippets take as given: the reader's own model, passages, retriever, index, files and server."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

from tests.helpers.hostile_pdfs import page_showing, stream
from tests.helpers.openai_server import LoopbackServer, Reply

TEXTS = [f"Report {n}: Anna Berg won on Sunday." for n in range(6)]


def my_llm(prompt: str) -> str:
    """A model that has read that Anna Berg won."""
    return "Anna Berg"


def core() -> dict[str, Any]:
    """Names of the core's snippets."""
    from robustrag_integrations import Passage

    passages = [Passage(text, origin=f"site-{n}.example") for n, text in enumerate(TEXTS)]
    return {"my_llm": my_llm, "passages": passages, "question": "Who won?", "search": lambda question: passages}


def langchain() -> dict[str, Any]:
    """Names of the LangChain snippets."""
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel, SimpleChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import tool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from langchain_robustrag import create_robust_retrieval_chain

    class Model(SimpleChatModel):
        @property
        def _llm_type(self) -> str:
            return "stand-in"

        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            return my_llm(messages[-1].content)

    class Reader(Model):
        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            return "Anna Berg" if "Anna Berg" in messages[-1].content else "I don't know"

    class AgentModel(BaseChatModel):
        """Searches once, and repeats what it is told."""

        @property
        def _llm_type(self) -> str:
            return "stand-in"

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            call = {"name": "search", "args": {"query": "Who won?"}, "id": "1"}
            said = AIMessage("", tool_calls=[call]) if isinstance(messages[-1], HumanMessage) else messages[-1].content
            return ChatResult(generations=[ChatGeneration(message=AIMessage(said) if isinstance(said, str) else said)])

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
            return [Document(text, metadata={"source": f"site-{n}.example"}) for n, text in enumerate(TEXTS)]

    @tool
    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    @tool
    def send_mail(text: str) -> str:
        """Send a mail."""
        raise AssertionError("a check sends no mail")

    llm, retriever = Model(), Retriever()
    return {
        "llm": llm,
        "reader": Reader(),
        "agent_model": AgentModel(),
        "inputs": {"messages": [("human", "Who won?")]},
        "retriever": retriever,
        "prompt": ChatPromptTemplate.from_template("{context}\n{input}"),
        "rag": create_robust_retrieval_chain(retriever, llm),
        "add": add,
        "send_mail": send_mail,
    }


def llamaindex() -> dict[str, Any]:
    """Names of the LlamaIndex snippets."""
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.tools import QueryEngineTool

    from llamaindex_robustrag import RobustRAGQueryEngine, TextModelLLM
    from robustrag_integrations import CallableModel

    llm = TextModelLLM(CallableModel(my_llm))
    documents = [Document(text=text, doc_id=f"site-{n}.example") for n, text in enumerate(TEXTS)]
    index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=8))
    engine = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm)
    tool = QueryEngineTool.from_defaults(engine, name="news", description="The news.")
    return {"llm": llm, "index": index, "agent": ReActAgent(tools=[tool], llm=llm)}


def stand_ins(extras: set[str]) -> dict[str, Any]:
    """The names for snippets with these extras."""
    names = {"__name__": "snippets", **core()}
    if any(extra.startswith("langchain") for extra in extras):
        names |= langchain()
    if "llamaindex" in extras:
        names |= llamaindex()
    return names


def write_files(folder: Path) -> None:
    """The documents and questions that commands name."""
    for name in ("notes", "news"):
        (folder / name).mkdir()
        for number, text in enumerate(TEXTS):
            (folder / name / f"{number}.txt").write_text(f"{text} Anna Lind runs the mill.\n")
    font = b"/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    letter = stream(b"BT /F 9 Tf 0 0 Td (Anna Lind runs the mill.) Tj ET")
    (folder / "letters.pdf").write_bytes(page_showing(letter, resources=font))
    rows = [{"text": "Strelsau is the capital of Ruritania.", "source": f"site-{n}.example"} for n in range(5)]
    (folder / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = {"question": "Who won?", "answer": "Anna Berg", "incorrect": "Eve Crook", "passages": TEXTS[:3]}
    (folder / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    (folder / "questions.json.gz").write_bytes(gzip.compress(json.dumps([asked]).encode()))


def server(tokenizer_folder: Path | None) -> LoopbackServer:
    """An OpenAI-compatible server that says "Anna Berg", with log-probabilities where it is asked for them."""
    if tokenizer_folder is None:
        return LoopbackServer(my_llm)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(tokenizer_folder))
    said = tokenizer(" Anna Berg", add_special_tokens=False)["input_ids"]

    def answer(request: dict[str, Any]) -> Reply:
        prompt = request["prompt"]
        done = next((n for n in range(len(said), 0, -1) if prompt[-n:] == said[:n]), 0)
        token = said[done] if done < len(said) else tokenizer.eos_token_id
        others = [n for n in range(request["logprobs"]) if n != token][: request["logprobs"] - 1]
        top = {f"token_id:{token}": math.log(0.999), **{f"token_id:{n}": -20.0 - n for n in others}}
        name = f"token_id:{token}"
        listed = {"tokens": [name], "token_logprobs": [top[name]], "text_offset": [0], "top_logprobs": [top]}
        choice = {"index": 0, "text": name, "finish_reason": "length", "logprobs": listed}
        body = {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
        return Reply(body=json.dumps(body).encode())

    return LoopbackServer(answer, whole_requests=True)
