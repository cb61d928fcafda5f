"""Where can retrieved text reach a model without isolation? A static check, and the audit of a run.

pip install 'robustrag-integrations[llamaindex]'
"""

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import LLMMultiSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    assert_defended,
    audit_isolation,
    find_undefended,
)

llm = MockLLM()
texts = ["The river Vok rises in the hills above Tarsk.", "The mayor of Vokar is called Hilda Brandt."]
index = VectorStoreIndex.from_documents([Document(text=t) for t in texts], embed_model=MockEmbedding(embed_dim=8))
robust = RobustRAGSynthesizer(llm=llm)
engine = index.as_query_engine(llm=llm, response_synthesizer=robust)
told = index.as_query_engine(llm=llm, response_synthesizer=robust.for_prompts())
tool = QueryEngineTool.from_defaults(told, name="facts", description="facts")

wirings = {
    "as_query_engine(response_synthesizer=robust)": engine,
    "RobustRAGQueryEngine": RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm),
    "RobustCondensePlusContextChatEngine": RobustCondensePlusContextChatEngine.from_defaults(
        index.as_retriever(), llm=llm
    ),
    "as_chat_engine('context', response_synthesizer=robust)": index.as_chat_engine(
        chat_mode="context", llm=llm, response_synthesizer=robust
    ),
    "a router of several choices": RouterQueryEngine(LLMMultiSelector.from_defaults(llm=llm), [tool], llm=llm),
    "a retriever tool": RetrieverTool.from_defaults(index.as_retriever()),
}
for name, wiring in wirings.items():
    findings = find_undefended(wiring)
    print(f"{name}: {'NOT defended' if findings else 'defended'}")
    for finding in findings:
        print(f"    {finding}")

try:
    assert_defended(list(wirings.values()))
except UndefendedError as error:
    print(error)

for name, answering in {"stock": index.as_query_engine(llm=llm), "robust": engine}.items():
    with audit_isolation() as audit:
        answering.query("Who is the mayor of Vokar?")
    print(f"{name}: {len(audit.findings)} prompts with texts of several documents", *audit.findings, sep="\n    ")
