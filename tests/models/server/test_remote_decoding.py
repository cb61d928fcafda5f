"""Decoding aggregation on a server with real log-probabilities: as on the same model in this process, or less sure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpx", reason="needs the extra openai")
pytest.importorskip("torch", reason="needs the extra local")

from robustrag_integrations import DecodingAggregation, LocalModel, ModelError
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    choose_token,
    fixed_point,
    is_decided,
    step_radius,
)
from robustrag_integrations.models.server.decoding import RemoteDecodingModel, token_list
from tests.helpers.demo_questions import demo_question
from tests.helpers.logprob_server import LogprobServer, Meddle
from tests.helpers.openai_server import LoopbackServer, Reply
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.usefixtures("no_server_settings")

QUESTION = "Who runs the mill?"
PASSAGES = ["The mill is run by Anna Lind."] * 4 + ["The mill was sold.", "Bo Ek runs the mill, they say."]


@cache
def parts() -> tuple[Any, Any]:
    return tiny_model("llama"), tiny_tokenizer()


@cache
def reader_parts() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from robustrag_integrations.reader import reader_path

    folder = str(reader_path())
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


@cache
def local(eta: float = 0.0, question: str = QUESTION) -> Any:
    model = LocalModel(*parts(), chat=False)
    return DecodingAggregation(model, eta=eta, max_new_tokens=8).answer(question, PASSAGES)


@contextmanager
def served(
    *, cap: int = 100_000, by_id: bool = True, meddle: Meddle | None = None, **settings: Any
) -> Iterator[tuple[LogprobServer, RemoteDecodingModel]]:
    with LogprobServer(*parts(), cap=cap, by_id=by_id, meddle=meddle) as server:
        model = RemoteDecodingModel("m", server.url, **{"tokenizer": parts()[1], "attempts": 1, **settings})
        try:
            yield server, model
        finally:
            model.close()


def answered(model: RemoteDecodingModel, eta: float = 0.0, **settings: Any) -> Any:
    return DecodingAggregation(model, eta=eta, max_new_tokens=8, **settings).answer(QUESTION, PASSAGES)


@pytest.mark.parametrize("eta", [0.0, 0.5, 3.0])
def test_with_all_tokens_listed_the_answer_is_that_of_the_local_model(eta: float) -> None:
    with served(top_logprobs=400) as (_, model):
        answer = answered(model, eta)
    expected = local(eta)
    assert (answer.text, answer.radius) == (expected.text, expected.radius)
    assert answer.evidence["tokens"] == expected.evidence["tokens"]
    assert answer.evidence["gaps"] == pytest.approx(expected.evidence["gaps"], abs=1e-4)
    assert [(g.status, g.response) for g in answer.sources] == [(g.status, g.response) for g in expected.sources]


@pytest.mark.parametrize("count", [1, 3, 20])
def test_where_short_lists_leave_a_choice_open_longer_ones_are_asked_for(count: int) -> None:
    with served(top_logprobs=count) as (server, model):
        answer = answered(model)
    assert answer.evidence["tokens"] == local().evidence["tokens"]
    assert answer.radius <= local().radius
    if count == 1:
        assert {r["logprobs"] for r in server.requests} > {1, 8}


def test_a_server_with_a_cap_gives_an_answer_with_a_lower_radius_and_says_so() -> None:
    with served(top_logprobs=2, cap=2) as (server, model):
        answer, again = answered(model), answered(model)
    assert answer.text == again.text
    assert answer.radius == 0
    assert any("does not decide which token is best" in w for w in answer.warnings)
    assert sum(r["logprobs"] > 2 for r in server.requests) == len(PASSAGES) + 1  # refused once, never asked again


@pytest.mark.parametrize("by_id", [True, False], ids=["vLLM's names", "SGLang's names"])
def test_the_bundled_reader_answers_on_a_server_as_it_does_here(by_id: bool) -> None:
    near = LocalModel.bundled(max_context_tokens=64)
    expected = DecodingAggregation(near).answer(QUESTION, PASSAGES)
    with LogprobServer(*reader_parts(), by_id=by_id) as server:
        far = RemoteDecodingModel("m", server.url, tokenizer=reader_parts()[1], chat=False)
        answer = DecodingAggregation(far).answer(QUESTION, PASSAGES)
        far.close()
    assert (answer.text, answer.radius) == (expected.text, expected.radius)
    assert [g.status for g in answer.sources] == [g.status for g in expected.sources]


def test_half_precision_widens_the_intervals_and_not_the_radius_of_what_is_clear() -> None:
    """A server that computes in float16 lists float16 numbers, which need not sum to 1."""

    def meddle(request: dict[str, Any], top: dict[str, float]) -> dict[str, Any]:
        return {name: float(np.float16(value * 0.997)) for name, value in top.items()}

    query, passages = demo_question(4)
    expected = DecodingAggregation(LocalModel.bundled(), eta=0).answer(query, passages)
    with LogprobServer(*reader_parts(), meddle=meddle) as server:
        far = RemoteDecodingModel("m", server.url, tokenizer=reader_parts()[1], chat=False)
        answer = DecodingAggregation(far, eta=0).answer(query, passages)
        far.close()
    assert [g.error for g in answer.sources] == [None] * len(passages)
    assert answer.radius >= 1
    assert answer.text == expected.text
    assert answer.radius <= expected.radius
    codec = far.codec
    halves = {f"token_id:{n}": float(np.float16(np.log(p))) for n, p in enumerate([0.6, 0.3, 0.05])}
    singles = {name: value - 1e-5 for name, value in halves.items()}
    wide, narrow = (
        token_list({"choices": [{"logprobs": {"top_logprobs": [top]}}]}, 3, codec.token_of) for top in (halves, singles)
    )
    assert wide.unlisted > narrow.unlisted + 0.01


# --- certificates


@pytest.mark.parametrize("count", [400, 20])
def test_certificates_are_those_of_the_local_model_or_lower(count: int) -> None:
    settings: dict[str, Any] = {"corruption_size": [0, 1, 2], "max_model_calls": 60}
    near = DecodingAggregation(LocalModel(*parts(), chat=False), eta=5.0, max_new_tokens=3)
    expected = near.certify(QUESTION, PASSAGES, local(5.0).text[:1], **settings)
    with served(top_logprobs=count) as (_, model):
        far = DecodingAggregation(model, eta=5.0, max_new_tokens=3)
        found = far.certify(QUESTION, PASSAGES, local(5.0).text[:1], **settings)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.tau or 0) <= (theirs.tau or 0)
        if count == 400:
            assert (ours.tau, ours.certified) == (theirs.tau, theirs.certified)
        assert any("server" in w for w in ours.warnings)


# --- intervals


def test_no_attack_within_the_radius_of_an_interval_changes_the_token_whatever_the_intervals_hide() -> None:
    """Rows are cut to their K best tokens; the whole rows, and every replacement of r of them, give the same token."""
    rng = np.random.default_rng(3)
    checked = decided = 0
    for _ in range(300):
        n, vocabulary, count = int(rng.integers(3, 7)), int(rng.integers(4, 9)), int(rng.integers(1, 5))
        eta = int(rng.choice([0.0, 0.3, 1.5]) * ONE)
        favourite = np.eye(vocabulary)[rng.integers(vocabulary)]
        rows = 0.7 * favourite + 0.3 * rng.dirichlet(np.full(vocabulary, 0.5), size=n)
        t0 = int(rng.integers(vocabulary))
        cut, error = rows.copy(), 0.0
        for row in cut:
            order = np.argsort(-row)
            row[order[count:]] = 0
            error += min(row[order[count - 1]], 1 - row.sum())
        slack = int(np.ceil(error * ONE)) + n
        choice = choose_token(fixed_point(cut), t0, eta)
        if is_decided(choice, t0, eta, slack):
            decided += 1
            assert choose_token(fixed_point(rows), t0, eta).token == choice.token
        radius = step_radius(fixed_point(cut), choice, t0, eta, slack, n - 1)
        whole = choose_token(fixed_point(rows), t0, eta)
        assert radius <= step_radius(fixed_point(rows), whole, t0, eta, 0, n - 1)
        for _ in range(20 if radius else 0):
            attacked = rows.copy()
            hit = rng.choice(n, size=radius, replace=False)
            attacked[hit] = np.eye(vocabulary)[rng.integers(vocabulary, size=radius)]
            checked += 1
            assert choose_token(fixed_point(attacked), t0, eta).token == choice.token
            listed = attacked.copy()
            for row in listed:
                row[np.argsort(-row)[count:]] = 0
            assert choose_token(fixed_point(listed), t0, eta).token == choice.token
    assert checked > 500
    assert decided > 100


# --- hostile and lesser servers


def _first_source_only(change: Any) -> Meddle:
    """Meddle with the replies about the passage that speaks of Bo Ek."""

    def meddle(request: dict[str, Any], top: dict[str, float]) -> dict[str, Any] | Reply | None:
        return change(top) if "Bo Ek" in parts()[1].decode(request["prompt"]) else None

    return meddle


def _raw(logprobs: str) -> Reply:
    choice = '{"index": 0, "text": "", "finish_reason": "length", "logprobs": ' + logprobs + "}"
    head = '{"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": ['
    return Reply(body=(head + choice + "]}").encode())


HOSTILE: dict[str, tuple[Any, str]] = {
    "NaN": (lambda top: {**top, next(iter(top)): float("nan")}, "nan"),
    "a text": (lambda top: {**top, next(iter(top)): "often"}, "often"),
    "too few": (lambda top: dict(list(top.items())[:5]), "5 tokens of 20"),
    "none": (lambda top: {}, "no token log-probabilities"),
    "sum above 1": (lambda top: dict.fromkeys(top, -0.5), "sum to"),
    "the same token twice": (lambda top: {**top, "token_id:07": -9.0, "token_id:7": -9.0}, "twice"),
    "no logprobs": (lambda top: _raw("null"), "no token log-probabilities"),
    "a list": (lambda top: _raw('{"top_logprobs": [[1, 2]]}'), ""),
    "duplicate keys": (lambda top: _raw('{"top_logprobs": [{"token_id:5": -0.1, "token_id:5": -3}]}'), "1 tokens of"),
    "not JSON": (lambda top: Reply(body=b'{"choices": [{"'), "not JSON"),
    "600 kB of empty choices": (lambda top: Reply(body=b'{"choices": [' + b"{}," * 200_000 + b"{}]}"), "max_tokens"),
    "nested lists": (lambda top: _raw("[" * 30_000 + "]" * 30_000), "not JSON"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_replies_that_cannot_be_probabilities_fail_their_source_and_never_count(how: str) -> None:
    change, said = HOSTILE[how]
    with served(top_logprobs=20, meddle=_first_source_only(change)) as (_, model):
        answer = answered(model)
    assert answer.sources[-1].status == "failed"
    assert said in (answer.sources[-1].error or "")
    assert [g.status for g in answer.sources[:-1]].count("failed") == 0
    assert answer.evidence["answering"] == len(PASSAGES) - 1
    assert answer.radius < len(PASSAGES) - 1


def test_a_source_that_fails_in_mid_answer_says_nothing_from_then_on() -> None:
    length = 0

    def meddle(request: dict[str, Any], top: dict[str, float]) -> Reply | None:
        nonlocal length
        if "Bo Ek" not in parts()[1].decode(request["prompt"]):
            return None
        length = length or len(request["prompt"])
        return Reply("out of order", status=500) if len(request["prompt"]) > length + 1 else None

    with served(top_logprobs=400, meddle=meddle) as (_, model):
        answer = answered(model, gamma=1.0)
    assert answer.sources[-1].status == "failed"
    assert "out of order" in (answer.sources[-1].error or "")
    assert answer.text


@pytest.mark.parametrize("status", [404, 400])
def test_what_a_server_lacks_is_named(status: int) -> None:
    with LoopbackServer(lambda request: Reply("No", status=status), whole_requests=True) as server:
        model = RemoteDecodingModel("m", server.url, tokenizer=parts()[1], attempts=1)
        with pytest.raises(ModelError, match=r"completions API .* token ids, and 20 log-probabilities"):
            answered(model)
        model.close()
