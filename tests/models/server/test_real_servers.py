"""The bundled reader on servers that others wrote: decoding gives the answers of `LocalModel`, or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="needs the extra openai")
pytest.importorskip("torch", reason="needs the extra local")

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, ModelError
from robustrag_integrations.models.server.decoding import RemoteDecodingModel
from tests.helpers.demo_questions import demo_question

pytestmark = pytest.mark.usefixtures("no_server_settings")


@cache
def near() -> LocalModel:
    return LocalModel.bundled()


SERVERS = {"mlx-lm": "mlx_server", "llama-cpp-python": "llama_server"}


@pytest.fixture(params=["mlx-lm"])
def far(request: pytest.FixtureRequest, reader_folder: Path) -> Iterator[RemoteDecodingModel]:
    address = request.getfixturevalue(SERVERS[request.param])
    name = str(reader_folder)
    model = RemoteDecodingModel(name, address, tokenizer=name, chat=False, top_logprobs=11, max_concurrency=4)
    yield model
    model.close()


@pytest.mark.parametrize("number", [0, 4])
def test_decoding_gives_the_answer_of_the_local_model(far: RemoteDecodingModel, number: int) -> None:
    query, passages = demo_question(number)
    expected, answer = (DecodingAggregation(model, eta=0).answer(query, passages) for model in (near(), far))
    assert [g.error for g in answer.groups] == [None] * 4
    assert (answer.text, answer.radius) == (expected.text, expected.radius)
    assert answer.evidence["tokens"] == expected.evidence["tokens"]
    assert [(g.status, g.response) for g in answer.groups] == [(g.status, g.response) for g in expected.groups]
    assert not answer.abstained
    assert answer.evidence["gaps"] == pytest.approx(expected.evidence["gaps"], abs=0.05)  # half precision


@pytest.mark.parametrize("far", SERVERS, indirect=True)
def test_text_is_that_of_the_local_model(far: RemoteDecodingModel) -> None:
    query, passages = demo_question(0)
    expected, answer = (KeywordAggregation(model).answer(query, passages) for model in (near(), far))
    assert (answer.text, answer.radius) == (expected.text, expected.radius)
    assert [(g.response or "").strip() for g in answer.groups] == [g.response for g in expected.groups]


def test_on_llama_cpp_python_decoding_agrees_until_the_text_ends_and_says_why_not_there(
    llama_server: str, reader_folder: Path
) -> None:
    name = str(reader_folder)
    model = RemoteDecodingModel(name, llama_server, tokenizer=name, chat=False, max_concurrency=1)
    query, passages = demo_question(0)
    expected, answer = (
        DecodingAggregation(m, eta=0, max_new_tokens=4).answer(query, passages) for m in (near(), model)
    )
    assert (answer.text, answer.radius) == (expected.text, expected.radius)
    assert answer.evidence["tokens"] == expected.evidence["tokens"]
    assert answer.evidence["gaps"] == pytest.approx(expected.evidence["gaps"], abs=0.01)
    assert [g.error for g in answer.groups] == [None] * 4
    with pytest.raises(ModelError, match="where the most probable token ends the text"):
        DecodingAggregation(model, eta=0).answer(query, passages)
    model.close()


def test_a_list_that_is_too_long_for_mlx_is_refused_in_words(mlx_server: str, reader_folder: Path) -> None:
    name = str(reader_folder)
    model = RemoteDecodingModel(name, mlx_server, tokenizer=name, chat=False, attempts=1)
    with pytest.raises(ModelError, match=r"top_logprobs must be at most 11.*20 log-probabilities.*lower top_logprobs"):
        DecodingAggregation(model).answer(*demo_question(0))
    model.close()
