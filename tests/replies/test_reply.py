"""The data of a reply: what a function may return, and what it costs."""

import asyncio

from robustrag_integrations import CallableModel, Ending, Response, Usage
from robustrag_integrations.prompts import Prompt


def test_replies_that_differ_in_their_usage_alone_are_equal() -> None:
    assert Response("a", usage=Usage(prompt=3)) == Response("a", usage=Usage(prompt=4))
    assert Response("a", finish="length") != Response("a", finish="stop")


def test_a_response_of_an_ending_has_all_of_it() -> None:
    ending = Ending(finish="length", refusal="no", reasoning_chars=4, usage=Usage(completion=9))
    made = Response.of("text", ending, truncated=True)
    assert all(getattr(made, name) == getattr(ending, name) for name in Ending.__dataclass_fields__)
    assert (made.text, made.error, made.truncated) == ("text", None, True)


def test_a_function_may_say_how_its_reply_ended() -> None:
    said = Response("half an ans", finish="length")
    assert CallableModel(lambda prompt: said).generate([Prompt("x")], "isolated") == [said]

    async def aask(prompt: str) -> Response:
        return said

    assert asyncio.run(CallableModel(async_fn=aask).agenerate([Prompt("x")], "final")) == [said]


def test_a_stream_ends_in_how_it_ended() -> None:
    pieces = ["half ", "an ans", Ending(finish="length")]
    assert list(CallableModel(lambda p: "", stream_fn=lambda prompt: iter(pieces)).stream(Prompt("x"))) == pieces
    *text, ending = CallableModel(lambda p: Response("one", finish="stop")).stream(Prompt("x"))
    assert text == ["one"]
    assert isinstance(ending, Ending)
    assert ending.finish == "stop"
