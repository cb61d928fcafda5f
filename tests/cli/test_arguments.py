"""Flags that hold a number, pairs or labels, and options that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.cli import command_parser


def parsed(*words: str) -> Any:
    return command_parser().parse_args(["ask", "Who?", "--docs", ".", *words])


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (("--min-radius", "1"), "min_radius", 1),
        (("--min-radius", "other=9,internal=0"), "min_radius", {"other": 9, "internal": 0}),
        (("--weights", "a=3", "b=0", "--weights", "c=1"), "weights", {"a": 3, "b": 0, "c": 1}),
        (("--tiers", "wiki/=1"), "tiers", {"wiki/": "1"}),
        (("--tiers", "2024"), "tiers", "2024"),
    ],
)
def test_mappings_are_words_or_pairs(words: tuple[str, ...], name: str, value: Any) -> None:
    assert getattr(parsed(*words), name) == value


def test_a_number_does_not_take_the_question() -> None:
    assert command_parser().parse_args(["ask", "--docs", ".", "--min-radius", "1", "Who?"]).min_radius == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tiers", "a=x", "--tiers", "department"), "'department' comes beside another value"),
        (("--min-radius", "2", "--min-radius", "other=3"), "'other=3' comes beside another value"),
        (("--limt", "5"), "there is no option --limt"),
        (("--min-radus", "5"), "did you mean --min-radius"),
    ],
)
def test_what_cannot_be_meant_is_an_error(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert said in capsys.readouterr().err
