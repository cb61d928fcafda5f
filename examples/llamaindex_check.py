"""Does retrieved text reach a model without isolation? One question, checked; then an agent, wired both ways.

pip install '.[llamaindex]'
"""

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import EmbeddingSingleSelector
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustQueryEngineTool,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    assert_defended,
    audit_isolation,
)

QUESTION = "Who is the mayor of Vokar?"

llm = MockLLM()  # it repeats its prompt: whatever it reads, it says
texts = ["The river Vok rises in the hills above Tarsk.", "The mayor of Vokar is called Hilda Brandt."]
embedding = MockEmbedding(embed_dim=8)
index = VectorStoreIndex.from_documents([Document(text=t) for t in texts], embed_model=embedding)
engine = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm)
selector = EmbeddingSingleSelector.from_defaults(embed_model=embedding)

programs = {
    "a stock engine": index.as_query_engine(llm=llm),
    "as_query_engine(response_synthesizer=robust)": index.as_query_engine(
        llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm)
    ),
    "as_chat_engine('context', response_synthesizer=robust)": index.as_chat_engine(
        chat_mode="context", llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm)
    ),
    "RobustCondensePlusContextChatEngine": RobustCondensePlusContextChatEngine.from_defaults(
        index.as_retriever(), llm=llm
    ),
    "CondenseQuestionChatEngine over the engine": CondenseQuestionChatEngine.from_defaults(engine, llm=llm),
    "CondenseQuestionChatEngine over an engine with reader='model'": CondenseQuestionChatEngine.from_defaults(
        RobustRAGQueryEngine.from_args(index.as_retriever(), llm=llm, reader="model"), llm=llm
    ),
    "a router": RouterQueryEngine(
        selector,
        [RobustQueryEngineTool.from_defaults(engine, name=name, description=name) for name in ("rivers", "mayors")],
        llm=llm,
    ),
    "a tool whose answer a model reads": lambda question: llm.complete(
        f"Translate: {QueryEngineTool.from_defaults(engine).call(question).content}"
    ),
    "the robust tool": lambda question: llm.complete(
        f"Translate: {RobustQueryEngineTool.from_defaults(engine).call(question).content}"
    ),
}
for name, program in programs.items():
    try:
        print(f"{name}: {assert_defended(program, QUESTION)}")
    except UndefendedError as error:  # noqa: PERF203 - one program after the other
        print(f"{name}: {error}")

for name, answering in {"stock": index.as_query_engine(llm=llm), "robust": engine}.items():
    with audit_isolation() as audit:
        answering.query(QUESTION)
    print(f"{name}: {len(audit.findings)} prompts with texts of several documents", *audit.findings, sep="\n    ")
