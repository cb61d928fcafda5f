"""How sure a model was of a reply, and the log-probabilities that clients give."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from robustrag_integrations.models.reply import LEVELS, LONGEST, confidence, logprobs_in


@pytest.mark.parametrize(
    ("logprobs", "level"),
    [
        (None, None),
        ((), None),
        ((math.nan, -1.0), None),
        ((0.0,), LEVELS),
        ((math.log(0.5),), LEVELS // 2),
        ((math.log(0.5),) * 4, LEVELS // 4),  # 0.5 ** (4 / 2)
        ((-math.inf, -1.0), 0),
    ],
)
def test_confidence(logprobs: Any, level: int | None) -> None:
    assert confidence(logprobs) == level


TOKEN = {"token": "a", "logprob": -0.5, "top_logprobs": []}


@pytest.mark.parametrize(
    "found",
    [
        {"content": [TOKEN, TOKEN]},
        {"content": None, "token_logprobs": [-0.5, -0.5]},
        SimpleNamespace(content=[SimpleNamespace(logprob=-0.5), SimpleNamespace(logprob=-0.5)]),
        [-0.5, -0.5],
        [TOKEN, SimpleNamespace(logprob=-0.5)],
    ],
)
def test_logprobs_as_clients_list_them(found: Any) -> None:
    assert logprobs_in(found) == (-0.5, -0.5)


@pytest.mark.parametrize(
    "found",
    [
        None, {}, [], "a", 5, {"content": []}, {"content": "abc"}, {"content": {"logprob": -1}}, {"content": [None]},
        {"content": [{"logprob": "-1"}]}, {"content": [{"token": "a"}]}, {"content": [TOKEN, {"logprob": math.nan}]},
        {"token_logprobs": [-0.5, 5]}, {"token_logprobs": [-0.5, 1e308]}, {"token_logprobs": [True]},
        {"token_logprobs": [None, -0.5]}, {"token_logprobs": [[-0.5]]}, {"token_logprobs": [-0.5] * (LONGEST + 1)},
    ],
)  # fmt: skip
def test_what_is_no_list_of_logprobs_is_not_known(found: Any) -> None:
    assert logprobs_in(found) is None


def test_logprobs_are_finite_and_not_above_0() -> None:
    assert logprobs_in([1e-7, -math.inf, -(10**400), 0]) == (0.0, -1e4, -1e4, 0.0)
