"""A server that is busy is asked again, unless the model does that by itself."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from langchain_robustrag import CallOptions, create_robust_documents_chain
from tests.langchain.fakes import PROMPT, Reader, read
from tests.langchain.test_configured_models import GIVEN, STYLES, report


class TooMany(Exception):
    """A 429 that asks for hardly any patience."""

    def __init__(self, pause: str = "0.01") -> None:
        super().__init__("Error code: 429")
        self.status_code = 429
        self.response = SimpleNamespace(headers={"retry-after": pause}, status_code=429)


class Rationed:
    """Refuses every prompt as often as told before it answers."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self.lock:
            self.asked[prompt] += 1
            refused = self.asked[prompt] <= self.times
        if refused:
            raise TooMany
        return read(prompt)


class Patient(Reader):
    """A model whose client tries again by itself."""

    max_retries: int = 2


@pytest.mark.parametrize("style", STYLES)
async def test_a_429_is_tried_again_in_every_call(style: str) -> None:
    rationed = Rationed(2)
    answer = await report(
        create_robust_documents_chain(
            Reader(answer=rationed), PROMPT, return_robustness=True, aggregation="keyword", final="always"
        ),
        style,
    )
    assert "paris" in answer.text.casefold()
    assert [g.status for g in answer.groups] == ["supports"] * 5
    assert set(rationed.asked.values()) == {3}


@pytest.mark.parametrize("style", STYLES)
async def test_a_group_that_gave_up_says_so(style: str) -> None:
    rationed = Rationed(2)

    def fifth(prompt: str) -> str:
        return rationed(prompt) if "Guide 4" in prompt else read(prompt)

    chain = create_robust_documents_chain(
        Reader(answer=fifth),
        PROMPT,
        calls=CallOptions(attempts=2),
        return_robustness=True,
        aggregation="keyword",
        final="always",
    )
    answer = await report(chain, style)
    assert answer.groups[4].error == "gave up after 2 tries: TooMany: Error code: 429"
    assert "paris" in answer.text.casefold()


@pytest.mark.parametrize("style", STYLES)
async def test_a_pause_that_is_too_long_is_named(style: str) -> None:
    def fifth(prompt: str) -> str:
        if "Guide 4" in prompt:
            raise TooMany("3600")
        return read(prompt)

    answer = await report(
        create_robust_documents_chain(
            Reader(answer=fifth), PROMPT, return_robustness=True, aggregation="keyword", final="always"
        ),
        style,
    )
    assert answer.groups[4].error == (
        "TooMany: Error code: 429 (the server asks to be left alone for 3600 seconds, more than are waited for)"
    )


@pytest.mark.parametrize("wrap", ["max_retries", "with_retry"])
async def test_the_tries_of_a_model_are_not_multiplied(wrap: str) -> None:
    rationed = Rationed(99)
    chosen: Any = {
        "max_retries": Patient(answer=rationed),
        "with_retry": Reader(answer=rationed).with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
    }[wrap]
    chain = create_robust_documents_chain(chosen, PROMPT, quorum=0.0, aggregation="keyword", final="always")
    with pytest.raises(Exception, match="429"):
        await chain.ainvoke(GIVEN)
    assert max(rationed.asked.values()) == (1 if wrap == "max_retries" else 2)
