"""What a model refuses is found out once, by a probe without passages, and left out from then on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection

import pytest

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.caller import ModelCaller, RetriedCall
from robustrag_integrations.models.capabilities import Capabilities, Probe, sent_parameters, without
from robustrag_integrations.models.client_errors import PARAMETERS, refused_parameter
from robustrag_integrations.models.limits import CallLimits


class Refusal(Exception):
    """A client's error."""

    def __init__(self, words: str, status: int | None = 400, param: str | None = None, body: object = None) -> None:
        super().__init__(words)
        self.status_code, self.param, self.body = status, param, body


WORDS = [
    ("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
     "temperature"),
    ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
    ("`temperature` is deprecated for this model.", "temperature"),
    ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
     "max_tokens"),
    ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', "seed"),
    ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "top_p"),
    ("System role not supported", "system"),
    ("Developer instruction is not enabled for models/gemma-3-27b-it", "system"),
    ("Conversation roles must alternate user/assistant/user/assistant/...", "system"),
    ("create() got an unexpected keyword argument 'top_p'", "top_p"),
    ("The prompt is too long", None),
    ("this model has nothing to say about the temperature", None),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_an_error_is_read_for_the_parameter_that_it_refuses(words: str, expected: str | None) -> None:
    assert refused_parameter(Refusal(words), PARAMETERS) == expected


def test_what_an_error_names_in_a_field_of_its_own_comes_first() -> None:
    assert refused_parameter(Refusal("invalid: seed", param="temperature"), PARAMETERS) == "temperature"
    detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
    assert refused_parameter(Refusal("", 422, body={"detail": detail}), PARAMETERS) == "seed"
    body = {"error": {"message": "no", "param": "messages[0].role"}}
    assert refused_parameter(Refusal("", body=body), PARAMETERS) == "system"


def test_only_what_was_sent_can_be_refused_and_only_by_an_error_of_the_request() -> None:
    assert refused_parameter(Refusal("unsupported: temperature"), ("seed",)) is None
    for status in (401, 404, 429, 500, 503):
        assert refused_parameter(Refusal("unsupported: temperature", status), PARAMETERS) is None
    assert refused_parameter(ConnectionError("unsupported: temperature"), PARAMETERS) is None


def test_an_endless_error_is_read_in_no_time() -> None:
    assert refused_parameter(Refusal("role " * 1_000_000 + "unsupported temperature"), PARAMETERS) is None


def test_a_request_loses_what_is_refused_and_a_limit_goes_under_its_other_name() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    request = {"model": "m", "messages": messages, "temperature": 0.0, "max_tokens": 9, "extra_body": {"top_k": 1}}
    assert sent_parameters(request) == ("top_k", "max_tokens", "system", "temperature")
    assert without(request, ()) == request
    assert without(request, {"temperature", "max_tokens", "system", "top_k"}) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Be brief.\n\nWho?"}],
        "max_completion_tokens": 9,
        "extra_body": {},
    }
    assert "max_completion_tokens" not in without(request, {"max_tokens", "max_completion_tokens"})


CALLER = ModelCaller(CallLimits(8), attempts=1)


class Endpoint:
    """Refuses some parameters, and whatever its prompt says that it refuses."""

    def __init__(self, *refuses: str) -> None:
        self.refuses = refuses
        self.asked: list[tuple[str, frozenset[str]]] = []
        self.lock = threading.Lock()

    def answer(self, prompt: str, refused: Collection[str]) -> str:
        with self.lock:
            self.asked.append((prompt, frozenset(refused)))
        for name in self.refuses:
            if name not in refused:
                raise Refusal(f"Unsupported parameter: '{name}'")
        if "unsupported" in prompt:
            raise Refusal(prompt)
        return f"{prompt}!"

    @property
    def probes(self) -> list[frozenset[str]]:
        return [refused for prompt, refused in self.asked if prompt == "probe"]

    def probe(self, found: Capabilities) -> Probe[str]:
        return Probe(_sent, lambda refused: self.answer("probe", refused), found)

    def aprobe(self, found: Capabilities) -> Probe:
        async def ask(refused: frozenset[str]) -> str:
            await asyncio.sleep(0)
            return self.answer("probe", refused)

        return Probe(_sent, ask, found)


def _sent(refused: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in ("seed", "top_p", "temperature") if name not in refused)


def _ask(endpoint: Endpoint, prompt: str) -> Callable[[Collection[str]], str]:
    return lambda refused: endpoint.answer(prompt, refused)


def test_several_refusals_are_found_out_in_one_go_and_remembered() -> None:
    endpoint, found = Endpoint("temperature", "seed"), Capabilities()
    assert CALLER.call(_ask(endpoint, "a"), RetriedCall(endpoint.probe(found))) == "a!"
    assert found.refused == {"temperature", "seed"}
    assert len(endpoint.asked) == 1 + 3 + 1
    assert CALLER.call(_ask(endpoint, "b"), RetriedCall(endpoint.probe(found))) == "b!"
    assert len(endpoint.asked) == 6


def test_what_a_prompt_makes_an_error_say_is_not_believed_and_not_asked_about_again() -> None:
    endpoint, found = Endpoint(), Capabilities()
    for _ in range(5):
        with pytest.raises(Refusal):
            CALLER.call(_ask(endpoint, "unsupported temperature, seed"), RetriedCall(endpoint.probe(found)))
    assert found.refused == frozenset()
    assert endpoint.probes == [frozenset()]


def test_threads_that_are_refused_at_once_share_one_probe() -> None:
    endpoint, found = Endpoint("temperature"), Capabilities()
    together = threading.Barrier(8)

    def ask(refused: Collection[str]) -> str:
        if not refused:
            together.wait(5)
        return endpoint.answer("a", refused)

    threads = [threading.Thread(target=CALLER.call, args=(ask, RetriedCall(endpoint.probe(found)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(endpoint.probes) == 2  # refused once, and answered once
    assert len(endpoint.asked) == 8 + 2 + 8


async def test_tasks_that_are_refused_at_once_share_one_probe_and_streams_begin_anew() -> None:
    endpoint, found = Endpoint("temperature"), Capabilities()

    async def ask(refused: frozenset[str]) -> str:
        await asyncio.sleep(0)
        return endpoint.answer("a", refused)

    assert (
        await asyncio.gather(*(CALLER.acall(ask, RetriedCall(endpoint.aprobe(found))) for _ in range(8))) == ["a!"] * 8
    )
    assert len(endpoint.probes) == 2

    async def pieces(refused: frozenset[str]):
        yield endpoint.answer("b", refused)

    assert [piece async for piece in CALLER.astream(pieces, endpoint.aprobe(Capabilities()))] == ["b!"]
    answer = endpoint.probe(Capabilities())
    assert list(CALLER.stream(lambda refused: iter([endpoint.answer("c", refused)]), answer)) == ["c!"]


def test_a_stream_that_has_begun_is_not_asked_again() -> None:
    def pieces(refused: frozenset[str]):
        yield "half"
        raise Refusal("unsupported temperature")

    endpoint, found = Endpoint("temperature"), Capabilities()
    said = []
    with pytest.raises(Refusal):
        said += list(CALLER.stream(pieces, endpoint.probe(found)))
    assert endpoint.asked == []


def test_a_probe_that_fails_for_another_reason_teaches_nothing_and_may_be_repeated() -> None:
    busy = iter([True, False, False])

    def probe(refused: Collection[str]) -> str:
        if next(busy):
            raise ModelError("the connection broke off")
        return endpoint.answer("probe", refused)

    endpoint, found = Endpoint("temperature"), Capabilities()
    with pytest.raises(Refusal):
        CALLER.call(_ask(endpoint, "a"), RetriedCall(Probe(_sent, probe, found)))
    assert CALLER.call(_ask(endpoint, "a"), RetriedCall(Probe(_sent, probe, found))) == "a!"
