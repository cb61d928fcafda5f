"""A program of a LlamaIndex user, for a type checker; it never runs."""

from llama_index.core import Document, MockEmbedding, PromptTemplate, VectorStoreIndex
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore
from pydantic import BaseModel

from llamaindex_robustrag import (
    CheckedRun,
    DiverseRetriever,
    Finding,
    IsolationAudit,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustQueryEngineTool,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    TextModelLLM,
    assert_defended,
    audit_isolation,
    robust_answer,
)
from robustrag_integrations import CallableModel


class City(BaseModel):
    name: str


llm = MockLLM()
index = VectorStoreIndex.from_documents([Document(text="Paris")], embed_model=MockEmbedding(embed_dim=8))
synthesizer = RobustRAGSynthesizer(
    llm=llm, method="keyword", alpha=0.3, beta=3, group_by=lambda node: node.node.node_id
)
engine = index.as_query_engine(llm=llm, response_synthesizer=synthesizer, similarity_top_k=10)
response = engine.query("Who won?")
answer = robust_answer(response)
radius: int = answer.radius
for citation in answer.citations:
    print([response.source_nodes[at].metadata["page"] for at in citation.positions])
own = RobustRAGQueryEngine.from_args(index.as_retriever(similarity_top_k=10), llm=llm, streaming=True)
own2 = own.with_retriever(DiverseRetriever(index.as_retriever(), sources=3))
reply = own.query("x")
nodes: list[NodeWithScore] = answer.supporting(response.source_nodes)
chat = RobustContextChatEngine.from_defaults(index.as_retriever(), llm=llm)
said = chat.chat("hi")
meta = said.metadata
if meta is not None:
    print(meta["robustrag"]["radius"])
chat2 = RobustCondensePlusContextChatEngine.from_defaults(index.as_retriever(), response_synthesizer=synthesizer)
for piece in chat2.stream_chat("hi").response_gen:
    print(piece)
checked: CheckedRun = assert_defended(engine, "x", pass_through=["add"], stubs={"send_mail": "sent"})
print(checked, checked.not_vouched_for)
tool = RobustQueryEngineTool.from_defaults(own)
asked = CondenseQuestionChatEngine.from_defaults(
    RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm, reader="model")
)
with audit_isolation() as audit:
    engine.query("x")
found: list[Finding] = audit.findings
IsolationAudit(on="raise").attach().detach()
syn = RobustRAGSynthesizer(TextModelLLM(CallableModel(lambda p: "x")), output_cls=City)
whole = syn.synthesize("q", [])
template = RobustRAGSynthesizer(llm, text_qa_template=PromptTemplate("{context_str} {query_str}"))
own3 = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm, agreement="majority", min_radius=1, abstention="-")
wrong1 = RobustRAGSynthesizer(llm, method="kyword")  # type: ignore[arg-type]
wrong2 = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm, reader="modle")  # type: ignore[arg-type]
wrong3 = RobustContextChatEngine.from_defaults(index.as_retriever(), llm=llm, small_tak=True)  # type: ignore[call-arg]
