"""A user's function that raises over one response costs that response's source, in answers and certificates alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, MajorityVoting
from robustrag_integrations.defenses.voting import defense as voting_settings

PASSAGES = ["Paris"] * 6


def _raising(error: BaseException) -> Callable[[str], set[str]]:
    """An extractor of words that cannot read a response with "evil" in it."""

    def extract(text: str) -> set[str]:
        if "evil" in text:
            raise error
        return set(text.lower().split())

    return extract


def _model() -> CallableModel:
    def respond(prompt: str) -> str:
        return "evil Rome" if "planted" in prompt else "Paris"

    return CallableModel(respond)


class _Wordless(Exception):
    """An exception of somebody else's class, which cannot even be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")


class _Panic(BaseException):
    """What libraries in Rust raise, such as tokenizers: it is not an `Exception`."""


def _deep(text: str) -> set[str]:
    return _deep(text) if "evil" in text else {"paris"}


ERRORS = [
    ValueError("odd word"),
    SystemError("returned NULL without setting an exception"),
    AssertionError(),
    IndexError("list index out of range"),
    KeyError("\x1b[31m"),
    MemoryError(),
    StopIteration(),
    _Wordless(),
    _Panic("index out of bounds"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
]


@pytest.mark.parametrize("extract", [*map(_raising, ERRORS), _deep], ids=[*map(repr, ERRORS), "RecursionError"])
def test_an_extractor_that_raises_over_one_response_costs_its_source_alone(extract: Callable[[str], set[str]]) -> None:
    defense = KeywordAggregation(_model(), extractor=extract)
    answer = defense.answer("Where?", ["planted", *PASSAGES])
    assert answer.text == "Paris"
    assert answer.radius == defense.answer("Where?", [*PASSAGES, ""]).radius >= 1
    first, *others = answer.sources
    assert first.status == "failed"
    assert first.error is not None
    assert "could not be read" in first.error
    assert {source.status for source in others} == {"supports"}
    assert "\x1b" not in answer.explain()
    assert asyncio.run(defense.aanswer("Where?", ["planted", *PASSAGES])) == answer
    assert "".join(defense.stream("Where?", ["planted", *PASSAGES])) == answer.text


def test_a_certificate_counts_the_same_failure() -> None:
    failing = KeywordAggregation(_model(), extractor=_raising(SystemError("odd")))
    abstaining = KeywordAggregation(_model(), extractor=_raising(SystemError("odd")))
    found = failing.certify("Where?", ["planted", *PASSAGES], "Paris")
    assert (found.certified, found.tau) == (True, 1.0)
    assert found.tau == abstaining.certify("Where?", [*PASSAGES, ""], "Paris").tau
    assert any("sources failed (its response could not be read: SystemError: odd)" in w for w in found.warnings)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_interrupts_and_cancellations_pass(error: BaseException) -> None:
    defense = KeywordAggregation(_model(), extractor=_raising(error))
    with pytest.raises(type(error)):
        defense.answer("Where?", ["planted", *PASSAGES])


def test_an_extractor_that_returns_something_else_costs_its_source_alone() -> None:
    odd: list[object] = [7, "a string", [["unhashable"]], {1: 2}, [None]]
    for returned in odd:

        def extract(text: str, returned: object = returned) -> object:
            return returned if "evil" in text else {"paris"}

        answer = KeywordAggregation(_model(), extractor=extract).answer("Where?", ["planted", *PASSAGES])  # type: ignore[arg-type]
        assert (answer.text, answer.sources[0].status) == ("Paris", "failed")


def test_an_abstention_function_decides_and_one_that_raises_costs_its_source_alone() -> None:
    def abstains(text: str) -> bool:
        if "evil" in text:
            raise ValueError("odd")
        return False

    failed = KeywordAggregation(_model(), abstains=abstains).answer("Where?", ["planted", *PASSAGES])
    assert (failed.text, failed.sources[0].status) == ("Paris", "failed")
    by_phrase = KeywordAggregation(_model(), abstains=["evil Rome"]).answer("Where?", ["planted", *PASSAGES])
    assert (by_phrase.text, by_phrase.sources[0].status) == ("Paris", "abstained")
    with pytest.raises(TypeError, match="list of phrases"):
        KeywordAggregation(_model(), abstains="evil")


def test_a_vote_that_cannot_be_read_costs_its_source_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = voting_settings.parse_option

    def failing(text: str, choices: Sequence[str], *more: Any) -> int | None:
        if "evil" in text:
            raise IndexError("odd")
        return parse(text, choices, *more)

    monkeypatch.setattr(voting_settings, "parse_option", failing)
    defense = MajorityVoting(_model())
    answer = defense.answer("Where?", ["planted", *PASSAGES], choices=["Rome", "Paris"])
    assert (answer.text, answer.sources[0].status) == ("Paris", "failed")
    assert defense.certify("Where?", ["planted", *PASSAGES], "Paris", choices=["Rome", "Paris"]).tau == 1.0
