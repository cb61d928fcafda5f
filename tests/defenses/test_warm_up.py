"""After `warm_up` the first question loads nothing that the second does not, and no model was asked for it."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    DecodingAggregation,
    KeywordAggregation,
    MajorityVoting,
    ModelError,
    VanillaRAG,
)
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method
from robustrag_integrations.models.wrappers import TwoModels

QUESTION, PASSAGES = "Who runs the mill?", [f"Note {n}: the mill is run by Anna Lind." for n in range(4)]

FRESH = """
import sys
from robustrag_integrations import CallableModel, KeywordAggregation
defense = KeywordAggregation(CallableModel(lambda prompt: "It is run by Anna Lind, I think."), extractor="spacy")
defense.warm_up()
before = set(sys.modules)
defense.answer("Who runs the mill?", ["a", "b", "c"])
print(sorted(set(sys.modules) - before))
"""


def test_the_first_question_after_it_loads_no_module() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("method", [*METHODS.values(), *BASELINES.values()], ids=lambda method: method.name)
def test_every_method_rehearses(method: Method) -> None:
    defense = method.load()
    defense.rehearse(defense.settings_type.of(), 3)


def test_so_does_vanilla_rag_over_options() -> None:
    VanillaRAG(CallableModel(str), task="multiple_choice").warm_up()


@pytest.mark.parametrize("kind", [KeywordAggregation, ConsensusAggregation, MajorityVoting])
async def test_functions_are_not_called_and_nothing_is_logged(
    kind: type[Defense], caplog: pytest.LogCaptureFixture
) -> None:
    def refused(prompt: str) -> str:
        raise AssertionError("the model was asked")

    caplog.set_level(logging.DEBUG)
    defense = kind(CallableModel(refused), min_groups=50)
    defense.warm_up()
    await defense.awarm_up(2)
    assert [record for record in caplog.records if record.name.startswith("robustrag")] == []


def test_the_number_of_passages_is_checked() -> None:
    with pytest.raises(ValueError, match="passages=0 must be a whole number of at least 1"):
        KeywordAggregation(CallableModel(str)).warm_up(0)


@pytest.mark.parametrize("kind", [KeywordAggregation, DecodingAggregation])
def test_a_local_models_first_question_costs_what_the_second_costs(kind: type[Defense]) -> None:
    pytest.importorskip("torch")
    from robustrag_integrations import LocalModel
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    network = tiny_model("llama")
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    network.register_forward_pre_hook(count)
    settings = {"max_context_tokens": 24, "max_new_tokens": 3, "chat": False, "stop": ()}
    defense = kind(LocalModel(network, tiny_tokenizer(), **settings))
    taken = []
    defense.warm_up(len(PASSAGES))
    for _ in range(3):
        taken.append(passes)
        defense.answer(QUESTION, PASSAGES)
    first, second = taken[1] - taken[0], taken[2] - taken[1]
    assert first == second
    assert taken[0] > first  # the probe, the shared prefix and the measure of noise came before


def _chain(model: Any) -> Any:
    chain = pytest.importorskip("langchain_robustrag").create_robust_documents_chain(model, aggregation="decoding")
    documents = pytest.importorskip("langchain_core.documents")
    context = [documents.Document(text, metadata={"source": str(n)}) for n, text in enumerate(PASSAGES)]
    return chain, lambda: chain.invoke({"input": QUESTION, "context": context})


def _synthesizer(model: Any) -> Any:
    llamaindex = pytest.importorskip("llamaindex_robustrag")
    schema = pytest.importorskip("llama_index.core.schema")
    llm = pytest.importorskip("llama_index.core.llms").MockLLM()
    synthesizer = llamaindex.RobustRAGSynthesizer(llm, aggregation="decoding", local_model=model)
    nodes = [schema.NodeWithScore(node=schema.TextNode(text=text, id_=str(n))) for n, text in enumerate(PASSAGES)]
    return synthesizer, lambda: synthesizer.synthesize(QUESTION, nodes)


@pytest.mark.parametrize("front_door", [_chain, _synthesizer])
def test_frameworks_probe_the_local_model_that_they_decode_with(front_door: Callable[[Any], Any]) -> None:
    pytest.importorskip("torch")
    from robustrag_integrations import LocalModel
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    settings = {"max_context_tokens": 24, "max_new_tokens": 3, "chat": False, "stop": ()}
    model = LocalModel(tiny_model("llama"), tiny_tokenizer(), **settings)
    door, ask = front_door(model)
    assert model.numerics["isolation"].startswith("not probed")
    door.warm_up(len(PASSAGES))
    found = model.numerics["isolation"]
    assert not found.startswith("not probed")
    ask()
    assert model.numerics["isolation"] == found


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_synthesizer_warms_models_of_the_core_and_calls_no_other_llm(style: str) -> None:
    llamaindex = pytest.importorskip("llamaindex_robustrag")
    mock = pytest.importorskip("llama_index.core.llms").MockLLM
    pytest.importorskip("torch")
    from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler

    from robustrag_integrations import LocalModel
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    class Refusing(mock):
        def complete(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("an LLM was called")

    network, passes = tiny_model("llama"), []
    network.register_forward_pre_hook(lambda *_: passes.append(None))
    model = LocalModel(network, tiny_tokenizer(), max_context_tokens=24, max_new_tokens=3, chat=False, stop=())
    heard = LlamaDebugHandler(print_trace_on_end=False)
    own = llamaindex.TextModelLLM(model, callback_manager=CallbackManager([heard]))
    for llm, final_llm, asked in ((own, None, True), (Refusing(), own, True), (Refusing(), None, False)):
        passes.clear()
        synthesizer = llamaindex.RobustRAGSynthesizer(llm, final_llm=final_llm)
        if style == "sync":
            synthesizer.warm_up()
        else:
            await synthesizer.awarm_up()
        assert bool(passes) is asked
    assert heard.get_event_pairs() == []


class _Models(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []
    connected: ClassVar[set[tuple[str, int]]] = set()

    def _reply(self, body: bytes) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.connected.add(self.client_address)
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(200 if self.command == "POST" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._reply(b"{}")

    def do_POST(self) -> None:
        self._reply(
            b'{"choices": [{"message": {"role": "assistant", "content": "Anna Lind"}, "finish_reason": "stop"}]}'
        )

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> str:
    _Models.asked, _Models.connected = [], set()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Models)
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()
    http.server_close()


def test_a_server_is_sent_no_prompt_and_its_connection_stays_open(server: str) -> None:
    pytest.importorskip("openai")
    from robustrag_integrations import OpenAIModel

    model = OpenAIModel("m", server, max_concurrency=1)
    defense = KeywordAggregation(TwoModels(model, model))
    defense.warm_up()
    assert set(_Models.asked) == {"GET /v1/models"}  # a server without such a list will do
    assert defense.answer(QUESTION, PASSAGES).text == "Anna Lind"
    assert len(_Models.connected) == 1
    model.close()


async def test_connections_are_opened_in_the_event_loop_that_asks(server: str) -> None:
    pytest.importorskip("openai")
    from robustrag_integrations import OpenAIModel

    model = OpenAIModel("m", server, max_concurrency=1)
    defense = KeywordAggregation(model)
    await defense.awarm_up()
    await defense.aanswer(QUESTION, PASSAGES)
    assert len(_Models.connected) == 1
    await model.aclose()


def test_a_synthesizer_opens_the_connection_of_a_model_of_the_core(server: str) -> None:
    pytest.importorskip("openai")
    llamaindex = pytest.importorskip("llamaindex_robustrag")
    from robustrag_integrations import OpenAIModel

    model = OpenAIModel("m", server, max_concurrency=1)
    synthesizer = llamaindex.RobustRAGSynthesizer(llamaindex.TextModelLLM(model))
    synthesizer.warm_up()
    assert set(_Models.asked) == {"GET /v1/models"}
    assert str(synthesizer.get_response(QUESTION, PASSAGES)) == "Anna Lind"
    assert len(_Models.connected) == 1
    model.close()


async def test_a_chain_is_warmed_in_an_event_loop_without_asking_its_model() -> None:
    langchain = pytest.importorskip("langchain_robustrag")

    def refused(prompt: Any) -> str:
        raise AssertionError("the model was asked")

    await langchain.create_robust_documents_chain(refused).awarm_up(2)


def test_a_server_that_cannot_be_reached_is_an_error_without_a_retry() -> None:
    pytest.importorskip("openai")
    from robustrag_integrations import OpenAIModel

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = OpenAIModel("m", f"http://127.0.0.1:{port}/v1", attempts=5)
    with pytest.raises(ModelError):
        KeywordAggregation(model).warm_up()
    model.close()


async def test_the_chain_with_retrieval_and_the_query_engine_warm_what_answers_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither retrieves, and neither asks a model of a framework."""
    langchain, llamaindex = pytest.importorskip("langchain_robustrag"), pytest.importorskip("llamaindex_robustrag")
    from langchain_core.runnables import RunnableLambda
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever

    def refused(asked: Any) -> Any:
        raise AssertionError("nothing is to be retrieved or asked")

    class Refusing(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            return refused(query_bundle)

    warmed: list[int] = []
    for kind in (langchain.RobustDocuments, llamaindex.RobustRAGSynthesizer):
        monkeypatch.setattr(kind, "warm_up", lambda self, passages=10: warmed.append(passages))
    nothing = RunnableLambda(refused)
    chains = [langchain.create_robust_retrieval_chain(nothing, nothing, supporting_only=only) for only in (False, True)]
    for front_door in (*chains, llamaindex.RobustRAGQueryEngine.from_args(Refusing(), llm=MockLLM())):
        front_door.warm_up(3)
        await front_door.awarm_up(4)
    assert warmed == [3, 4] * 3
