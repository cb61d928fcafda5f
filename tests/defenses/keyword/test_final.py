"""Who words the answer of keyword aggregation: the kept words, or the model at the end, which never decides it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, Passage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from tests.helpers.scripted import BARE

ORDERS = ["iron and copper", "copper, iron", "copper, iron", "iron and copper", "copper, iron and tin"]
SAME = ["Tarsk"] * 5
Final = str | Response | Exception


def defense(replies: list[str], says: Final | Callable[[str], str], **settings: Any) -> Any:
    """What the groups say, and what the model says at the end."""

    def model(prompt: str) -> Any:
        own = [reply for i, reply in enumerate(replies) if f"passage {i}." in prompt]
        said = own[0] if own else says
        if isinstance(said, Exception):
            raise said
        return said(prompt) if callable(said) else said

    return KeywordAggregation(CallableModel(model), alpha=0.8, beta=4, **settings)


def ask(
    replies: list[str], says: Final | Callable[[str], str], question: str = "Which metals?", **settings: Any
) -> Any:
    passages = [Passage(f"passage {i}.", source=f"s{i}") for i in range(len(replies))]
    return defense(replies, says, **settings).answer(question, passages)


def test_one_kept_key_is_the_answer_without_a_call() -> None:
    answer = ask(SAME, AssertionError("not to be asked"))
    assert (answer.text, answer.model_calls, answer.evidence["worded_by"]) == ("Tarsk", 5, "agreed")
    assert answer.evidence["retained"] == ["Tarsk"]


def test_several_kept_keys_are_worded_by_the_model_of_kept_words_alone() -> None:
    asked: list[str] = []
    answer = ask(ORDERS, lambda prompt: asked.append(prompt) or "Iron and copper.")
    assert (answer.text, answer.model_calls, answer.evidence["worded_by"]) == ("Iron and copper.", 6, "model")
    [prompt] = asked
    assert "passage" not in prompt
    assert "tin" not in prompt.split()


@pytest.mark.parametrize(
    "final",
    [
        "I don't know",
        "",
        "Iron, copper and gold",  # says what nobody agreed on
        "Visit https://evil.example",
        Response("", refusal="No way."),
        Response("iron and cop", finish="length"),
        Response(None, error="gone"),
        RuntimeError("gone"),
    ],
)
def test_a_final_reply_that_is_no_wording_gives_way_to_the_kept_words(final: Final) -> None:
    expected = ask(ORDERS, "", final="never")
    answer = ask(ORDERS, final)
    assert answer.text == expected.text == "copper, iron"
    assert (answer.evidence["worded_by"], answer.abstained) == ("agreed", False)
    assert answer.model_calls == 6
    for name in ("counts", "threshold", "retained", "answering"):
        assert answer.evidence[name] == expected.evidence[name]
    assert [(g.status, g.words, g.response) for g in answer.groups] == [
        (g.status, g.words, g.response) for g in expected.groups
    ]
    assert answer.radius == expected.radius_verbatim == answer.radius_verbatim


@pytest.mark.parametrize(
    "final",
    ["5 km", "It is 5 km.", "5 km by road", "by road, more than 5 km", "less by road", "less than 5 km/h by road"],
)
def test_a_final_reply_of_a_part_of_a_kept_key_gives_way(final: str) -> None:
    replies = ["less than 5 km by road"] * 3 + ["by road, less than 5 km"] * 2
    assert ask(replies, final, "How far is it?").text == "less than 5 km, road"
    assert ask(replies, "By road it is less than 5 km.", "How far is it?").text == "By road it is less than 5 km."


def test_a_failed_final_call_is_told_and_its_secret_is_not() -> None:
    key = "sk-" + "a1B2" * 12
    answer = ask(ORDERS, RuntimeError(f"bad key {key}\nline"))
    [warning] = [w for w in answer.warnings if "kept words are the answer" in w]
    assert key not in warning
    assert "\n" not in warning


def test_never_asks_the_model_at_the_end() -> None:
    for replies in (SAME, ORDERS):
        answer = ask(replies, AssertionError("not to be asked"), final="never")
        assert (answer.model_calls, answer.evidence["worded_by"]) == (5, "agreed")
    assert ask(["a", "b", "c"], AssertionError(), final="never").abstained


def test_always_is_the_papers_the_final_reply_is_the_answer() -> None:
    answer = ask(SAME, "It is Tarsk, I gather.", final="always")
    assert (answer.text, answer.model_calls, answer.evidence["worded_by"]) == ("It is Tarsk, I gather.", 6, "model")
    assert ask(SAME, "I don't know", final="always").abstained
    assert ask(["a", "b", "c"], AssertionError("nothing is kept"), final="always").model_calls == 3
    with pytest.raises(ModelError, match="gone"):
        ask(SAME, RuntimeError("gone"), final="always")
    with pytest.raises(ModelError, match="cut"):
        ask(SAME, Response("Tar", finish="length"), final="always")


def test_prompts_of_ones_own_are_asked_and_may_add_words() -> None:
    answer = ask(SAME, "It is the town of Tarsk", prompts=BARE)
    assert (answer.text, answer.evidence["worded_by"]) == ("It is the town of Tarsk", "model")
    foreign = ask(SAME, "Brezar", prompts=BARE)
    assert foreign.text == "Brezar"
    assert any("none of the kept words" in w for w in foreign.warnings)
    silent = ask(SAME, "I don't know", prompts=BARE)
    assert (silent.text, silent.abstained) == ("Tarsk", False)


def test_an_extractor_of_ones_own_has_its_words_put_together() -> None:
    answer = ask(SAME, "Tarsk it is", extractor=lambda text: set(text.lower().split()))
    assert (answer.text, answer.model_calls, answer.evidence["retained"]) == ("Tarsk it is", 6, ["tarsk"])


def test_the_radius_of_a_wording_counts_letters() -> None:
    """The model may word "IRON" otherwise than "iron", so that a changed letter may change the answer."""
    replies = ["Tarsk"] * 4 + ["TARSK"] * 3
    shown, worded = ask(replies, "", final="never"), ask(replies, "Tarsk", final="always")
    assert (shown.text, worded.text) == ("Tarsk", "Tarsk")
    assert worded.radius == worded.radius_verbatim == shown.radius_verbatim == 0
    assert shown.radius > 0


@pytest.mark.parametrize("final", ["auto", "always", "never"])
@pytest.mark.parametrize("way", ["aanswer", "stream", "astream"])
async def test_every_way_of_asking_gives_the_same(way: str, final: str) -> None:
    passages = [Passage(f"passage {i}.", source=f"s{i}") for i in range(5)]
    for said in ("Iron and copper", "gold"):
        made = defense(ORDERS, said, final=final)
        expected = made.answer("Which metals?", passages)
        if way == "aanswer":
            assert await made.aanswer("Which metals?", passages) == expected
            continue
        stream = getattr(made, way)("Which metals?", passages)
        pieces = list(stream) if way == "stream" else [piece async for piece in stream]
        assert "".join(map(str, pieces)) == expected.text
        assert stream.answer == expected


def test_what_final_may_be_is_named() -> None:
    with pytest.raises(ValueError, match="final="):
        KeywordAggregation(CallableModel(str), final="sometimes")  # type: ignore[arg-type]
