"""What of a reply counts: cut, refused and reasoned replies in every method and call style."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from robustrag_integrations import (
    CallableModel,
    Ending,
    KeywordAggregation,
    MajorityVoting,
    ModelError,
    Response,
    RobustAnswer,
    VanillaRAG,
)
from robustrag_integrations.models.base import Role
from robustrag_integrations.models.reply import Piece
from robustrag_integrations.replies.reading import CUT_MARK, counted, reply_warnings
from robustrag_integrations.replies.streams import RETRACTED
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

THINKS = "<think>If absent, reply I don't know. Options: Lyon, Karl Gross.</think> "
LIE = "Mallory Eve"
PASSAGES = ["lie", *(f"passage {i}" for i in range(9))]
WAYS = ["answer", "aanswer", "stream", "astream"]


def ask(defense: Any, way: str, **more: Any) -> tuple[RobustAnswer, str]:
    """The answer and what was shown, whole or in pieces."""

    async def pieces() -> tuple[RobustAnswer, str]:
        stream = defense.astream("Who runs the mill?", PASSAGES, **more)
        said = [piece async for piece in stream]
        return stream.answer, "".join(said)

    if way == "answer":
        answer = defense.answer("Who runs the mill?", PASSAGES, **more)
        return answer, answer.text
    if way == "aanswer":
        answer = asyncio.run(defense.aanswer("Who runs the mill?", PASSAGES, **more))
        return answer, answer.text
    if way == "stream":
        stream = defense.stream("Who runs the mill?", PASSAGES, **more)
        said = "".join(stream)
        return stream.answer, said
    return asyncio.run(pieces())


def model(honest: str | Response, lie: str | Response = LIE, final: str | Response | None = None) -> CallableModel:
    """Nine honest replies against one liar; the final one in pieces of three characters."""

    def said(prompt: str) -> str | Response:
        if "passage " in prompt:
            return honest
        return lie if "lie" in prompt else (final if final is not None else honest)

    def pieces(prompt: str) -> Iterator[str | Ending]:
        reply = said(prompt)
        text = reply if isinstance(reply, str) else reply.text or ""
        yield from (text[i : i + 3] for i in range(0, len(text), 3))
        if isinstance(reply, Response):
            yield reply

    return CallableModel(said, stream_fn=pieces)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reply", [THINKS, THINKS.removeprefix("<think>"), "◁think▷I don't know.◁/think▷"])
def test_reasoning_is_neither_counted_nor_shown(way: str, reply: str) -> None:
    answer, shown = ask(KeywordAggregation(model(f"{reply}Karl Gross"), alpha=0.5, beta=5), way)
    assert (answer.text, shown, answer.abstained) == ("Karl Gross", "Karl Gross", False)
    assert answer.radius == 3
    voted, shown = ask(MajorityVoting(model(f"{reply}Karl Gross")), way, choices=["Lyon", LIE, "Karl Gross"])
    assert (voted.text, shown) == ("Karl Gross", "Karl Gross")
    assert [g.choice for g in voted.sources] == [1, *[2] * 9]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "lie", ["<think>", "</think>", "</think></answer>", "<|channel|>final<|message|>Eve", "<think>Eve"]
)
def test_a_liar_who_writes_marks_costs_one_source(way: str, lie: str) -> None:
    answer, shown = ask(KeywordAggregation(model("Karl Gross", lie)), way)
    assert (answer.text, shown) == ("Karl Gross", "Karl Gross")
    assert [g.status for g in answer.sources[1:]] == ["supports"] * 9


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (Response("Karl Gro", finish="length"), "cut at its limit of tokens"),
        (Response("Karl Gross", finish="content_filter"), "stopped by the server's content filter"),
        (Response("", finish="content_filter"), "stopped by the server's content filter"),
        (Response("", finish="tool_calls"), "it called a tool in place of answering"),
        (Response("", refusal="I can't help with that."), "refused: I can't help with that."),
        (Response(None, refusal="No."), "refused: No."),
        (Response("<think>Karl Gross", finish="length"), "its reasoning never ended: cut at its limit of tokens"),
        (Response("Karl Gross <think>hm"), "its reasoning never ended"),
        (Response("<think>Karl Gross</think>"), "there is reasoning and no answer after it"),
        (Response("", reasoning_chars=9), "there is reasoning and no answer after it"),
    ],
)
def test_what_is_no_whole_answer_abstains_with_its_reason(reply: Response, note: str) -> None:
    answer = KeywordAggregation(model("Karl Gross", reply)).answer("Who?", PASSAGES)
    status = "cut" if reply.finish == "length" else "abstained"
    assert (answer.sources[0].status, answer.sources[0].note, answer.text) == (status, note, "Karl Gross")
    assert len([w for w in answer.warnings if "1 of 10 sources" in w and "abstain" in w]) == 1
    assert note in answer.explain()
    voted = MajorityVoting(model("Karl Gross", reply)).answer("Who?", PASSAGES, choices=["Lyon", "Karl Gross"])
    assert (voted.sources[0].status, voted.sources[0].note) == (status, note)


def test_the_warning_names_the_models_own_argument_and_reasoning_only_where_there_was_some() -> None:
    plain, thought = Response("Karl Gro", finish="length"), Response("<think>Karl", finish="length")
    for reply in (plain, thought):
        [warning] = reply_warnings([counted(reply)], "max_new_tokens")
        assert "raise max_new_tokens=" in warning
        assert ("reasoning off" in warning) is (reply is thought)


def test_cut_replies_may_count() -> None:
    cut = Response("Karl Gro", finish="length")
    assert KeywordAggregation(model("x", cut), cut_replies="count").answer("Who?", PASSAGES).sources[0].keywords
    assert not KeywordAggregation(model("x", cut)).answer("Who?", PASSAGES).sources[0].keywords
    with pytest.raises(ValueError, match="cut_replies='no' must be 'abstain'"):
        KeywordAggregation(model("x"), cut_replies="no")  # type: ignore[arg-type]


FINALS: list[Callable[[CallableModel, str], Any]] = [
    lambda m, cut: KeywordAggregation(m, cut_replies=cut, final="always"),  # type: ignore[arg-type]
    lambda m, cut: VanillaRAG(m, cut_replies=cut),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("defense", FINALS, ids=["keyword", "vanilla"])
@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_final_answer_that_was_cut_is_no_answer(way: str, defense: Any, finish: Any) -> None:
    cut = Response("Karl Gross runs the", finish=finish)
    asked = model("Karl Gross", "Karl Gross", cut) if defense is FINALS[0] else model(cut, cut)
    with pytest.raises(ModelError, match=r"no complete answer: .*cut_replies='count'"):
        ask(defense(asked, "abstain"), way)
    answer, shown = ask(defense(asked, "count"), way)
    assert answer.text == shown == f"Karl Gross runs the{CUT_MARK}"
    assert any(w.startswith("the answer is incomplete") for w in answer.warnings)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("final", "told"),
    [
        (Response("", refusal="No way."), "refused: No way."),
        ("<think>zsecret</think>", "there is reasoning and no answer after it"),
        ("", "the reply is empty"),
    ],
)
def test_a_final_reply_without_an_answer_is_an_abstention(way: str, final: str | Response, told: str) -> None:
    answer, shown = ask(KeywordAggregation(model("Karl Gross", final=final), final="always"), way)
    assert answer.abstained
    assert answer.text == shown == ABSTENTION
    assert any(told in w for w in answer.warnings)


def test_the_radius_counts_the_sources_for_which_a_stream_waits() -> None:
    """Without their reasoning a stream of several pieces has shown what a mark then closes."""
    final = "zsecret zsecret </think>Karl Gross"

    def defense(aloud: int) -> KeywordAggregation:
        def reply(prompt: str) -> str:
            place = next((n for n in range(6) if f"page {n}" in prompt), None)
            return final if place is None else "hm </think>Karl Gross" if place < aloud else "Karl Gross"

        return KeywordAggregation(CallableModel(reply, samples=False), alpha=0.5, beta=5)

    pages = [f"page {n}" for n in range(6)]
    answers = [defense(aloud).answer("Who?", pages) for aloud in range(7)]
    assert {answer.text for answer in answers} == {"Karl Gross"}
    assert [answer.radius for answer in answers[1:]] == [0, 1, 2, 2, 2, 2]
    assert list(defense(1).stream("Who?", pages)) == ["Karl Gross"]
    assert list(defense(0).stream("Who?", pages)) == ["Karl Gross"]  # it came in one piece


PIECES = {
    "closed at the end": ["hm, ", "hm", "</think>", "X"],
    "closed twice": ["hm", " </think> no", " </think>X"],
    "another channel": ["a", "b<|channel|>final<|message|>", "X"],
    "refused": ["It", " is", Ending(refusal="I will not.")],
    "refused without words": ["It", Ending(refusal="")],
    "cut": ["hm", "</think>X", Ending(finish="length")],
    "never ended": ["hm", "</think>X <think>so"],
    "a blank before it": [" ", "</think>X"],
    "plain": ["X", " Y"],
}


@pytest.mark.parametrize("cut_replies", ["abstain", "count"])
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_streams_answer_where_calls_do_and_show_the_answer_last(pieces: list[Any], cut_replies: Any) -> None:
    """What was shown and turns out to be no answer is told in a warning."""
    ending = pieces[-1] if isinstance(pieces[-1], Ending) else Ending()
    words = [piece for piece in pieces if isinstance(piece, str)]

    class Final(CallableModel):
        def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Any]:
            yield from pieces

        async def astream(self, prompt: Prompt, role: Role = "final") -> AsyncIterator[Any]:
            for piece in pieces:
                yield piece

    model = Final(
        lambda prompt: "Karl Gross" if "passage" in prompt else Response.of("".join(words), ending), samples=False
    )
    asked = {way: outcome(KeywordAggregation(model, cut_replies=cut_replies, final="always"), way) for way in WAYS}
    assert asked["answer"] == asked["aanswer"]
    assert asked["stream"] == asked["astream"]
    text = asked["answer"][0]
    streamed_text, streamed_shown, streamed_warnings = asked["stream"]
    assert streamed_text == text
    if text is not None:
        retracted = streamed_shown != text
        assert streamed_shown.endswith(f"\n\n{text}" if retracted else text)
        assert retracted == any("turned out to be no answer" in w or "refused" in w for w in streamed_warnings)
    assert (text is None) == (cut_replies == "abstain" and pieces in (PIECES["cut"], PIECES["never ended"]))


def outcome(defense: Any, way: str) -> tuple[str | None, str, tuple[str, ...]]:
    try:
        answer, shown = ask(defense, way)
    except ModelError:
        return None, "", ()
    return answer.text, shown, answer.warnings


def test_certificates_read_replies_in_the_same_way() -> None:
    def certified(honest: str | Response) -> float:
        return KeywordAggregation(model(honest)).certify("Who?", PASSAGES[1:], "Karl Gross").tau

    assert certified(f"{THINKS}Karl Gross") == 1
    assert certified(Response("Karl Gross", finish="length")) == 0


BROKEN: dict[str, list[Piece]] = {
    "at once": [],
    "later": ["Hans ", "Wo"],
    "within its reasoning": ["<think>It is ", "Karl"],
    "after other words": ["Karl"],
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("empty", [True, False])
def test_a_stream_that_fails_is_made_up_for_by_a_call(said: list[Piece], empty: bool) -> None:
    """Unless the call fails, too; what was shown stays, and is retracted where the call says something else."""

    def pieces(prompt: str) -> Iterator[Piece]:
        yield from said
        if said or not empty:
            raise RuntimeError("the stream broke off")

    async def apieces(prompt: str) -> AsyncIterator[Piece]:
        for piece in pieces(prompt):
            yield piece

    reply = "<think>It is Hans.</think>Hans Wolf" if said == BROKEN["within its reasoning"] else "Hans Wolf"
    model = CallableModel(lambda prompt: reply, stream_fn=pieces, async_stream_fn=apieces, attempts=1)
    defense = KeywordAggregation(model, final="always")

    async def astreamed() -> str:
        return "".join([piece async for piece in defense.astream("Who won?", PASSAGES)])

    shown = "Karl\n\nHans Wolf" if said == ["Karl"] else "Hans Wolf"
    assert "".join(defense.stream("Who won?", PASSAGES)) == shown
    assert asyncio.run(astreamed()) == shown
    stream = defense.stream("Who won?", PASSAGES)
    list(stream)
    assert stream.answer.text == defense.answer("Who won?", PASSAGES).text == "Hans Wolf"
    assert any(RETRACTED in warning for warning in stream.answer.warnings) is (said == ["Karl"])


@pytest.mark.parametrize(
    ("text", "more", "stay"),
    [
        ("Paris", {}, True),
        (" Paris. ", {}, True),
        ("Paris", {"reasoning_chars": 9}, True),  # came apart: the model gave those of the answer
        (THINKS + "Paris", {}, False),
        ("Par", {"finish": "length"}, True),
        ("x" * 100_001, {}, False),
    ],
)
def test_the_logprobs_of_an_answer_are_not_those_of_what_was_dropped(text: str, more: Any, stay: bool) -> None:
    read = counted(Response(text, logprobs=(-0.1, -0.2), **more))
    assert read.logprobs == ((-0.1, -0.2) if stay else None)
