"""Where can retrieved text reach a model without isolation? A check for test suites and start-up; it calls no model.

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
    find_undefended,
)

llm = MockLLM()
index = VectorStoreIndex.from_documents([Document(text="A fact.")], embed_model=MockEmbedding(embed_dim=8))
robust = RobustRAGSynthesizer(llm=llm)
engine = index.as_query_engine(llm=llm, response_synthesizer=robust)
tool = QueryEngineTool.from_defaults(engine, name="facts", description="facts")

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

asked_to_stream = index.as_query_engine(llm=llm, response_synthesizer=robust, streaming=True)
try:
    assert_defended(asked_to_stream, streaming=True)
except UndefendedError as error:
    print(error)
