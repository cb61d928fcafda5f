"""OpenAI-compatible servers, through the official client, against a real HTTP server on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation, ModelError, OpenAIModel, QuorumError
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.openai_server import Reply, obedient_reader, served
from tests.helpers.serving import transformers_server
from tests.needs import needing

pytestmark = pytest.mark.usefixtures("no_server_settings")

QUESTION = "Who runs the mill?"
PASSAGES = [f"The mill is run by Anna Lind. Note {n}." for n in range(5)]


def defense(model: OpenAIModel, **settings) -> KeywordAggregation:
    return KeywordAggregation(model, final="always", **settings)


def test_every_request_asks_for_temperature_zero_and_the_seed() -> None:
    with served(obedient_reader, seed=7, max_tokens=33) as (server, model):
        defense(model).answer(QUESTION, PASSAGES)
    for request in server.requests:
        assert (request["temperature"], request["seed"], request["max_tokens"]) == (0.0, 7, 33)
        assert request["model"] == "m"
        assert [m["role"] for m in request["messages"]] == ["user"]


def test_the_key_comes_from_the_environment_and_never_shows_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with served(lambda prompt: Reply("bad key: sk-very-secret", status=401)) as (server, model):
        with pytest.raises(QuorumError) as caught:
            defense(model).answer(QUESTION, PASSAGES)
        assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in str(caught.value) + repr(vars(caught.value)) + repr(model) + model.description
    assert "bad key: ***" in str(caught.value)


def test_a_server_of_ones_own_needs_no_key_and_the_public_one_does() -> None:
    with served(obedient_reader) as (server, model):
        assert model.generate([Prompt("a mill is run by Bo Ek.")], "isolated")[0].text == "Bo Ek"
    assert "sk-" not in server.headers[0]["authorization"]
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIModel("gpt-4o-mini")


def test_answers_say_what_a_remote_model_means_for_the_radius() -> None:
    greedy = OpenAIModel("m", "http://127.0.0.1:9/v1", seed=0)
    assert greedy.repeats == Repeats("unknown", "it runs on a server, which was asked for temperature 0 and seed 0")
    assert greedy.deterministic
    assert greedy.warnings == ()
    sampling = OpenAIModel("m", "http://127.0.0.1:9/v1", temperature=0.7)
    assert sampling.repeats == Repeats("samples", "temperature 0.7")
    assert not sampling.deterministic
    assert OpenAIModel("m", "http://127.0.0.1:9/v1", temperature=None).repeats.model == "samples"


@needing("SERVING")
def test_a_real_server_of_transformers_answers(tmp_path: Path) -> None:
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer(chat=True).save_pretrained(tmp_path / "model")
    with transformers_server(tmp_path / "model", tmp_path) as address:
        model = OpenAIModel(str(tmp_path / "model"), address, max_tokens=5, timeout=120)
        [first, again] = [model.generate([Prompt("Hello?")], "isolated")[0] for _ in range(2)]
        assert first.error is None
        assert first.text == again.text
        assert "".join(p for p in model.stream(Prompt("Hello?")) if isinstance(p, str)) == first.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"base_url": "localhost:8000/v1"}, "base_url='localhost:8000/v1' must be the server's address"),
        ({"base_url": "http://ann:secret@/v1"}, "base_url='/v1' must be"),
        ({"base_url": "me:hunter2@localhost/v1"}, "base_url='localhost/v1' must be"),
        ({"api_key": 5}, "api_key must be a str or None, got int"),
        ({"temperature": -1}, "temperature=-1 must be a number of at least 0"),
        ({"timeout": "x"}, "timeout='x' must be above 0"),
        ({"model": " "}, "model="),
        ({"max_tokens": True}, "max_tokens="),
        ({"options": {"n": 3}}, "options may not hold n"),
    ],
)
def test_what_no_request_could_use_is_refused_at_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said) as failed:
        OpenAIModel(**{"model": "m", "base_url": "http://localhost:9/v1", **given})
    assert "hunter2" not in str(failed.value)
    assert "secret" not in str(failed.value)
