"""Who words the answer of keyword aggregation: the model at the end, as in the paper, or nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, Passage
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.base import Response

METALS = ["Iron and copper", "copper, iron", "copper, iron", "iron and copper", "copper, iron and tin"]
SAME = ["Tarsk"] * 5
Final = str | Response | Exception


def defense(replies: list[str], says: Final | Callable[[str], str], **more: Any) -> Any:
    """What the sources say, and what the model says at the end."""

    def model(prompt: str) -> Any:
        own = [reply for i, reply in enumerate(replies) if f"passage {i}." in prompt]
        said = own[0] if own else says
        if isinstance(said, Exception):
            raise said
        return said(prompt) if callable(said) else said

    return KeywordAggregation(CallableModel(model), **{"alpha": 0.8, "beta": 4, **more})


def ask(replies: list[str], says: Any = "", question: str = "Which metals?", **more: Any) -> Any:
    passages = [Passage(f"passage {i}.", origin=f"s{i}") for i in range(len(replies))]
    return defense(replies, says, **more).answer(question, passages)


def test_what_the_model_says_of_the_kept_keywords_alone_is_the_answer() -> None:
    asked: list[str] = []
    answer = ask(METALS, lambda prompt: asked.append(prompt) or "It is iron, and copper.")
    assert (answer.text, answer.model_calls) == ("It is iron, and copper.", 6)
    assert answer.evidence["retained"] == ["copper", "iron"]
    [prompt] = asked
    assert "Keywords: copper, iron\n" in prompt
    assert "passage" not in prompt
    assert answer.radius == answer.radius_verbatim == 1


def test_a_final_reply_that_fails_is_cut_or_abstains_is_told() -> None:
    assert ask(SAME, "I don't know").abstained
    assert ask(SAME, Response("", refusal="No way.")).abstained
    with pytest.raises(ModelError, match="gone"):
        ask(SAME, RuntimeError("gone"))
    with pytest.raises(ModelError, match="cut"):
        ask(SAME, Response("Tar", finish="length"))


def test_where_nothing_is_kept_nobody_is_asked_and_people_are_told_who_says_what() -> None:
    for final in ("always", "never"):
        answer = ask(["a1", "b2", "c3"], AssertionError("nothing is kept"), final=final)
        assert (answer.abstained, answer.radius, answer.model_calls) == (True, 0, 3)
        assert answer.text.splitlines()[1:] == ["- s0: a1", "- s1: b2", "- s2: c3"]
        assert answer.for_prompt().text == "I don't know"
    assert ask(["a1", "b2", "c3"], final="never", disagreement="abstain").text == "I don't know"


def test_a_long_answer_is_written_of_the_phrases_that_most_carry() -> None:
    replies = ["red mill, built in 1871"] * 3 + ["the red mill, a lie of mine"] * 2
    own: dict[str, Any] = {"alpha": None, "beta": None, "task": "long_form"}
    asked: list[str] = []
    answer = ask(replies, lambda p: asked.append(p) or "The red mill.", "Tell me.", **own)
    assert (answer.text, answer.evidence["retained"], answer.model_calls) == (
        "The red mill.",
        ["built in 1871", "red mill"],
        6,
    )
    assert "lie of mine" not in asked[0]
    assert answer.radius == 0
    whole = ask(["red mill, built in 1871"] * 5, "The red mill.", "Tell me.", **own)
    assert whole.radius == 2


@pytest.mark.parametrize("final", ["always", "never"])
@pytest.mark.parametrize("way", ["aanswer", "stream", "astream"])
async def test_every_way_of_asking_gives_the_same(way: str, final: str) -> None:
    passages = [Passage(f"passage {i}.", origin=f"s{i}") for i in range(5)]
    for replies in (METALS, list("abcde")):
        made = defense(replies, "Iron and copper", final=final)
        expected = made.answer("Which metals?", passages)
        if way == "aanswer":
            assert await made.aanswer("Which metals?", passages) == expected
            continue
        stream = getattr(made, way)("Which metals?", passages)
        pieces = list(stream) if way == "stream" else [piece async for piece in stream]
        assert "".join(map(str, pieces)) == expected.text
        assert stream.answer == expected
