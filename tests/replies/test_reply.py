"""The data of a reply: what a function may return, and what it costs."""

import math
from typing import Any

import pytest

from robustrag_integrations import Response, Usage


def test_replies_that_differ_in_usage_and_logprobs_alone_are_equal() -> None:
    assert Response("a", usage=Usage(prompt=3)) == Response("a", usage=Usage(prompt=4), logprobs=(-0.1,))
    assert hash(Response("a", logprobs=(-0.1,))) == hash(Response("a"))
    assert Response("a", finish="length") != Response("a", finish="stop")


@pytest.mark.parametrize("given", [(0.1,), (math.nan,), [-0.1], ("-0.1",), (-1, -2.0), (True,), -0.1])
def test_logprobs_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"logprobs=.* must be a tuple of floats of at most 0"):
        Response("a", logprobs=given)
