"""A program of a LangChain user, for a type checker; it never runs."""

from typing import Any

from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_robustrag import (
    Abstained,
    CallOptions,
    CheckedRun,
    DiverseRetriever,
    Finding,
    IsolationAudit,
    RobustDocuments,
    RobustOptions,
    UndefendedError,
    VoteRules,
    assert_defended,
    audit_isolation,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
    supporting_documents,
)
from langchain_robustrag.middleware import RobustRetrievalMiddleware


class State(TypedDict):
    input: str
    context: list[Document]
    answer: str
    robustness: dict[str, Any]


class City(BaseModel):
    name: str


llm = FakeListChatModel(responses=["Paris"])
prompt = ChatPromptTemplate.from_template("Answer from {context}. {input}")
store = InMemoryVectorStore.from_texts(["The capital is Paris"] * 5, DeterministicFakeEmbedding(size=8))
retriever = store.as_retriever(search_kwargs={"k": 10})
chain: RobustDocuments = create_robust_documents_chain(llm, prompt, group_by="source", min_support=1)
text: str = chain.invoke({"input": "q", "context": [Document("x")]})
rag = create_robust_retrieval_chain(
    retriever, llm, prompt, supporting_only=True, aggregation="keyword", alpha=0.3, beta=3, reader="model"
)
result = rag.invoke({"input": "Who won?"})
radius: int = result["robustness"].radius
for citation in result["robustness"].citations:
    print([result["context"][at].metadata["page"] for at in citation.positions])
for chunk in rag.stream({"input": "q"}):
    print(chunk.get("answer"))
old = create_retrieval_chain(retriever, chain)
tool = create_robust_retriever_tool(retriever, llm, "search", "searches")
agent = create_agent(
    llm, [tool, create_retriever_tool(retriever, "s2", "d")], middleware=[RobustRetrievalMiddleware(llm, tools=["s2"])]
)
checked: CheckedRun = assert_defended(agent, "Who won?", trusted=["s3"], stubs={"send_mail": "sent"})
unseen: tuple[str, ...] = checked.not_vouched_for
findings: list[Finding] = IsolationAudit(on="log").findings
graph = StateGraph(State)
graph.add_node("generate", create_robust_node(llm, group_by="source"))
graph.add_node("rag", rag)
options: RobustOptions = {"group_by": "source", "votes": VoteRules(min_radius=1), "calls": CallOptions(timeout=20)}
other = create_robust_documents_chain(llm, prompt, **options)
diverse = DiverseRetriever(retriever, sources=5, per_origin=1)
typed = create_robust_documents_chain(llm, prompt, output_schema=City)
answer = typed.invoke({"input": "q", "context": []})
if isinstance(answer, Abstained):
    print(answer.text)
with audit_isolation(on="raise") as audit:
    app = agent
try:
    rag.invoke({"input": "x"}, {"callbacks": [IsolationAudit()]})
except UndefendedError as error:
    print(error.findings)
docs: list[Document] = supporting_documents(result["robustness"], result["context"])
