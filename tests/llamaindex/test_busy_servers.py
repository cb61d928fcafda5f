"""What is known of an LLM's temperature, and servers that are busy."""

from __future__ import annotations

from typing import Any

import pytest

from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer
from robustrag_integrations import QuorumError
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, nodes_of, truthful

STYLES = ["query", "aquery", "stream", "astream"]


async def report(synthesizer: RobustRAGSynthesizer, style: str, texts: list[str] | None = None) -> dict[str, Any]:
    """The answer's report, asked in this style; streams give the text of the answer."""
    chosen = synthesizer.with_changes(streaming="stream" in style)
    nodes = nodes_of(truthful(5) if texts is None else texts)
    response: Any
    if style.startswith("a"):
        response = await chosen.asynthesize(QUESTION, nodes)
        pieces = [p async for p in response.async_response_gen()] if style == "astream" else [str(response)]
    else:
        response = chosen.synthesize(QUESTION, nodes)
        pieces = list(response.response_gen) if style == "stream" else [str(response)]
    assert "".join(pieces) == response.metadata["robustrag"]["text"]
    found: dict[str, Any] = response.metadata["robustrag"]
    return found


def advises(answer: dict[str, Any]) -> bool:
    return any("temperature=0" in warning for warning in answer["warnings"])


@pytest.mark.parametrize(
    ("temperature", "model", "advice"), [(0.0, "unknown", False), (0.7, "samples", True), (1.0, "samples", False),
                                         (None, "samples", False)]
)  # fmt: skip
async def test_what_is_known_of_a_temperature(temperature: float | None, model: str, advice: bool) -> None:
    class Warm(AsyncFactReader):
        temperature: float | None = None

    answer = await report(RobustRAGSynthesizer(llm=Warm(temperature=temperature)), "aquery")
    assert answer["determinism"]["model"] == model
    assert advises(answer) is advice


class TooMany(Exception):
    """A 429."""

    def __init__(self) -> None:
        super().__init__("Error code: 429")
        self.status_code = 429


class Rationed(AsyncFactReader):
    """Refuses each prompt once."""

    def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        first = prompt not in self.seen
        said = super().answer(prompt, kwargs)
        if first:
            raise TooMany
        return said


class PatientRationed(Rationed):
    """One whose client tries again by itself."""

    max_retries: int = 3


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chat_model", [False, True], ids=["completion", "chat"])
async def test_a_429_is_tried_again(style: str, chat_model: bool) -> None:
    llm = Rationed(chat_model=chat_model)
    answer = await report(RobustRAGSynthesizer(llm=llm), style)
    assert answer["text"] == "Paris"
    assert [g["status"] for g in answer["groups"]] == ["supports"] * 5
    assert len(llm.seen) == 10


async def test_the_tries_of_a_client_are_not_multiplied_and_a_group_that_gave_up_says_so() -> None:
    llm = PatientRationed()
    with pytest.raises(QuorumError, match="429"):
        await report(RobustRAGSynthesizer(llm=llm), "aquery")
    assert len(llm.seen) == 5
    with pytest.raises(QuorumError) as caught:
        await report(
            RobustRAGSynthesizer(llm=Stuck(), calls=CallOptions(attempts=2)),
            "aquery",
        )
    assert caught.value.causes[0] == "gave up after 2 tries: TooMany: Error code: 429"


class Stuck(AsyncFactReader):
    """Refuses everything."""

    def answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        raise TooMany
