"""A program of a LangChain user, for a type checker; it never runs."""

from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

from langchain_robustrag import (
    Abstained,
    DiverseRetriever,
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
)
from langchain_robustrag.middleware import RobustRetrievalMiddleware


class City(BaseModel):
    name: str


llm = FakeListChatModel(responses=["Paris"])
prompt = ChatPromptTemplate.from_template("Answer from {context}. {input}")
store = InMemoryVectorStore.from_texts(["The capital is Paris"] * 5, DeterministicFakeEmbedding(size=8))
retriever = store.as_retriever(search_kwargs={"k": 10})
chain: RobustDocuments = create_robust_documents_chain(llm, prompt, group_by="source", min_support=1)
text: str = chain.invoke({"input": "q", "context": [Document("x")]})
rag = create_robust_retrieval_chain(retriever, llm, prompt, method="keyword", alpha=0.3, beta=3)
result = rag.invoke({"input": "Who won?"})
radius: int = result["robustness"].radius


def first(documents: list[Document]) -> list[Document]:
    return documents[:5]


ranked = create_robust_retrieval_chain(retriever | RunnableLambda(first), llm, prompt, abstention="Not in our files.")
create_robust_retriever_tool(retriever | RunnableLambda(first), llm, "search", "searches")
create_robust_documents_chain(llm, method="kyword")  # type: ignore[arg-type]
create_robust_documents_chain(llm, return_robustnes=True)  # type: ignore[call-arg]
create_robust_documents_chain(llm, agreement="majorty")  # type: ignore[arg-type]
create_robust_retrieval_chain(retriever, llm, method="kyword")  # type: ignore[arg-type]
create_robust_retrieval_chain(retriever, llm, min_suport=3)  # type: ignore[call-arg]
for chunk in rag.stream({"input": "q"}):
    print(chunk.get("answer"))
old = create_retrieval_chain(retriever, chain)
tool = create_robust_retriever_tool(retriever, llm, "search", "searches")
agent = create_agent(llm, [tool], middleware=[RobustRetrievalMiddleware(llm, tools=["s2"])])
assert_defended(agent, "Who won?", pass_through=["s3"])
node = create_robust_node(llm, group_by="source")
options: RobustOptions = {"group_by": "source", "votes": VoteRules(min_radius=1)}
other = create_robust_documents_chain(llm, prompt, **options)
diverse = DiverseRetriever(retriever, sources=5, per_origin=1)
answer = create_robust_documents_chain(llm, prompt, output_schema=City).invoke({"input": "q", "context": []})
if isinstance(answer, Abstained):
    print(answer.text)
try:
    with audit_isolation(on="raise"):
        rag.invoke({"input": "x"}, {"callbacks": [IsolationAudit()]})
except UndefendedError as error:
    print(error.findings)
