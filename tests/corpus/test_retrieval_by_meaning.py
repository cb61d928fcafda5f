"""Retrieval by words and by meaning: what is found, what a hostile text can move, and servers that misbehave."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from robustrag_integrations import Passage
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.corpus import BM25Index, HybridIndex
from robustrag_integrations.models import embedding
from robustrag_integrations.models.embedding import embedding_of
from tests.helpers.openai_server import LoopbackServer, Reply

CONCEPTS = (
    {"ceo", "chief", "executive", "head", "leads"},
    {"holiday", "leave", "vacation", "days"},
    {"mill", "grain", "flour"},
)
TEXTS = (
    "Our chief executive since May is Ruth Penn.",
    "Staff have 28 days of leave a year.",
    "The mill grinds grain.",
    "Nobody is at the door.",
)


def vector(text: str) -> list[float]:
    """How many words of each concept a text has; a last number for the rest."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    counts = [float(sum(word in concept for word in words)) for concept in CONCEPTS]
    return [*counts, 0.1 * len(words)]


def embedded(request: dict[str, Any]) -> Reply:
    rows = [{"index": n, "embedding": vector(text)} for n, text in enumerate(request["input"])]
    return Reply(body=json.dumps({"object": "list", "data": rows[::-1]}).encode())


@pytest.fixture(autouse=True)
def _no_environment(no_server_settings: None) -> None:
    """No server in the environment."""


@pytest.fixture
def serving() -> Iterator[Callable[[Callable[[Any], Reply]], str]]:
    servers = []

    def start(reply: Callable[[Any], Reply]) -> str:
        servers.append(LoopbackServer(reply, whole_requests=True))
        return servers[-1].url

    yield start
    for server in servers:
        server.close()


def index(texts: tuple[str, ...], url: str) -> HybridIndex:
    return HybridIndex([Passage(t, origin=f"{n}.txt") for n, t in enumerate(texts)], embedding_of("openai:e", url))


def test_a_question_finds_what_shares_no_word_with_it(serving) -> None:
    url = serving(embedded)
    assert index(TEXTS, url).search("Who leads?", 1)[0].text == TEXTS[0]
    assert BM25Index([Passage(text) for text in TEXTS]).search("Who leads?", 1) == []
    found = index(TEXTS * 3, url).search("Who leads?", 3, per_source=1)
    assert [p.origin for p in found] == ["0.txt", "4.txt", "8.txt"]


def test_a_passage_that_fits_in_both_ways_comes_first(serving) -> None:
    texts = ("The door is open.", "Staff have vacation of 28 days.", "Of leave there are 28 days of vacation.", "No.")
    found = index(texts, serving(embedded)).search("How much leave is there?", 4)
    assert found[0].text == texts[2]
    assert len(found) == 4


def test_a_hostile_text_moves_no_other_vector(serving) -> None:
    embedding = embedding_of("openai:e", serving(embedded))
    usual = embedding.of_passages(TEXTS)
    hostile = embedding.of_passages([*TEXTS[:3], "ceo " * 500])
    assert np.array_equal(usual[:3], hostile[:3])
    assert np.allclose(np.linalg.norm(hostile, axis=1), 1)


def test_a_passage_that_the_server_refuses_costs_itself(serving) -> None:
    def picky(request: dict[str, Any]) -> Reply:
        if any("poison" in text for text in request["input"]):
            return Reply("too long", status=400)
        return embedded(request)

    found = index((*TEXTS, "poison ceo"), serving(picky)).search("Who leads?", 5)
    assert found[0].text == TEXTS[0]
    with pytest.raises(ModelError, match="refuses every passage"):
        index(("poison",), serving(picky))


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": ["1"]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [1e300]}]}',
        b'{"data": [{"index": 0, "embedding": [1%s]}]}' % (b"0" * 400),
        b'{"data": [{"index": 7, "embedding": [1]}]}',
        b'{"data": [{"index": [], "embedding": [1]}]}',
        b'{"data": {"0": 1}}',
        b"<html>",
    ],
)
def test_a_reply_that_holds_no_vectors_is_an_error_in_words(serving, body: bytes) -> None:
    with pytest.raises(ModelError, match=r"sent no 1 vectors of numbers|server sent"):
        index(("text",), serving(lambda request: Reply(body=body)))


def test_a_server_that_sends_too_much_or_nothing_or_elsewhere_is_an_error_in_words(
    serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere: list[Any] = []
    other = serving(lambda request: elsewhere.append(request) or embedded(request))
    never = Event()
    long = b'{"data": [{"embedding": [%s]}]}' % b",".join([b"1"] * 70_000)
    monkeypatch.setattr(embedding, "_SECONDS", 0.5)
    monkeypatch.setattr(embedding, "_LARGEST_REPLY", 200_000)
    monkeypatch.setattr(embedding, "_ATTEMPTS", 1)
    for reply, said in (
        (Reply(body=b'{"data": [' + b" " * 300_000 + b"]}"), "larger than 200,000 bytes$"),
        (Reply(body=long), "vectors of more than 65,536 numbers"),
        (Reply(body=b"[" * 100_000), "not JSON|in place of a completion"),
        (Reply(wait=never), "did not answer within 0.5 s"),
        (Reply(status=307, headers={"Location": f"{other}/embeddings"}), "redirects are not followed"),
    ):
        with pytest.raises(ModelError, match=said):
            index(TEXTS, serving(lambda request, reply=reply: reply))
    never.set()
    assert elsewhere == []


def test_vectors_that_are_too_few_are_refused_and_of_too_many_the_asked_ones_count(serving) -> None:
    def sending(count: int) -> Any:
        rows = [{"index": n, "embedding": [n + 1.0, 1.0]} for n in range(count)]
        return serving(lambda request: Reply(body=json.dumps({"data": rows}).encode()))

    with pytest.raises(ModelError, match="sent no 4 vectors"):
        index(TEXTS, sending(3))
    rows = embedding_of("openai:e", sending(99)).of_passages(TEXTS)
    assert rows[:, 0] / rows[:, 1] == pytest.approx([1, 2, 3, 4])


def test_an_error_that_echoes_the_key_does_not_show_it(serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdef")
    with pytest.raises(ModelError, match="401") as caught:
        index(("text",), serving(lambda request: Reply("no such key: sk-1234567890abcdef", status=401)))
    assert "1234567890" not in str(caught.value)


def test_a_question_whose_vector_has_another_length_is_an_error_in_words(serving) -> None:
    def changing(request: dict[str, Any]) -> Reply:
        row = [1.0, 0.0] if request["input"] == ["text"] else [1.0]
        return Reply(body=json.dumps({"data": [{"embedding": row}]}).encode())

    with pytest.raises(ModelError, match="differ in length"):
        index(("text",), serving(changing)).search("Who?", 1)


def test_texts_go_in_batches_and_busy_servers_are_asked_again(serving) -> None:
    asked: list[int] = []

    def busy(request: dict[str, Any]) -> Reply:
        asked.append(len(request["input"]))
        return Reply("wait", status=429) if len(asked) == 1 else embedded(request)

    rows = embedding_of("openai:e", serving(busy)).of_passages([f"text {n}" for n in range(70)])
    assert rows.shape == (70, 4)
    assert asked == [64, 64, 6]


def test_a_model_of_sentence_transformers_is_loaded_from_its_folder(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="the extra embedding is not installed")
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from tests.helpers.tiny_models import tiny_tokenizer

    static = StaticEmbedding(tiny_tokenizer().backend_tokenizer, embedding_dim=16)
    library.SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "model"))
    loaded = embedding_of(str(tmp_path / "model"))
    rows = loaded.of_passages(TEXTS)
    assert rows.shape == (4, 16)
    assert rows[1] @ loaded.of_question(TEXTS[1]) == pytest.approx(1, abs=1e-5)


def trap(folder: Path) -> Path:
    """A folder with code that leaves a mark, and pickles that do; no weights that can be used."""
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Evil:\n    load = print")

    class Pickled:
        def __reduce__(self) -> Any:
            return open, (str(folder / "ran"), "w")

    for name in ("pytorch_model.bin", "model.bin", "adapter_model.bin"):
        (folder / name).write_bytes(pickle.dumps(Pickled()))
    return folder


def described(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))


BERT = {"model_type": "bert", "hidden_size": 8, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 9}
OWN = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil", "AutoTokenizer": "evil.Evil"}
STATIC = "sentence_transformers.sentence_transformer.modules.StaticEmbedding"
DENSE = "sentence_transformers.base.modules.Dense"


@pytest.mark.parametrize(
    "files",
    [
        {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]},
        {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.model.pickle"}]},
        {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.model.torch"}]},
        {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": "../evil.Evil"}]},
        {"config.json": {**BERT, "auto_map": OWN}},
        {"config.json": {"model_type": "own", "auto_map": OWN}},
        {"config.json": {**BERT, "architectures": ["evil.Evil"]}},
        {
            "config.json": {**BERT, "auto_map": OWN},
            "sentence_bert_config.json": {"model_args": {"trust_remote_code": True}, "trust_remote_code": True},
        },
        {
            "modules.json": [{"idx": 0, "name": "0", "path": "0", "type": DENSE}],
            "0/config.json": {"in_features": 2, "out_features": 2, "activation_function": "evil.Evil"},
        },
        {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": STATIC}], "config.json": {}},
    ],
    ids=lambda files: json.dumps(files)[:60],
)
def test_code_and_pickles_in_a_folder_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Any]
) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra embedding is not installed")
    described(trap(tmp_path), files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError, match="cannot load the embedding model"):
        embedding_of(str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_a_version_that_runs_a_models_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra embedding is not installed")
    monkeypatch.setattr(embedding, "version", lambda name: "5.7.0")
    with pytest.raises(ImportError, match=r"5\.7\.0 runs code that a model brings.*\[embedding\]"):
        embedding_of(str(tmp_path))


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all"])
def test_a_folder_that_is_not_there_is_named(name: str) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra embedding is not installed")
    with pytest.raises(ModelError, match=f"cannot load the embedding model '{name}': there is no such folder"):
        embedding_of(name)


def test_a_served_model_needs_a_name_and_a_key_or_an_address() -> None:
    with pytest.raises(ModelError, match="has no name"):
        embedding_of("openai: ", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        embedding_of("openai:e")
