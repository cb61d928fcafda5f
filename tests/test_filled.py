"""Records that are filled at once are frozen dataclasses like any other."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from inspect import signature
from typing import Any

import pytest

from robustrag_integrations import Passage, RobustAnswer
from robustrag_integrations.filled import filled_at_once
from robustrag_integrations.models.base import Response


@dataclass(frozen=True)
class Base:
    last: str = field(default="end", kw_only=True)


@dataclass(frozen=True)
class Plain(Base):
    first: int
    second: tuple[int, ...] = ()
    third: dict[str, int] = field(default_factory=dict)
    fourth: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("first must not be negative")


@filled_at_once
@dataclass(frozen=True)
class Filled(Plain):
    pass


MADE: list[Callable[[type[Plain]], Plain]] = [
    lambda kind: kind(1),
    lambda kind: kind(1, (2,), {"a": 3}, 4, last="x"),
    lambda kind: kind(first=1, fourth=2),
    lambda kind: replace(kind(1, (2,)), second=(3,)),
    lambda kind: copy(kind(1, (2,))),
]


@pytest.mark.parametrize("make", MADE)
def test_they_hold_what_others_hold(make: Callable[[type[Plain]], Plain]) -> None:
    filled, plain = make(Filled), make(Plain)
    assert asdict(filled) == asdict(plain)
    assert repr(filled) == repr(plain).replace("Plain", "Filled")
    assert filled == make(Filled)


def test_they_refuse_what_others_refuse() -> None:
    wrong: list[Callable[[], Any]] = [lambda: Filled(), lambda: Filled(1, 2, 3, 4, 5), lambda: Filled(1, other=2)]  # type: ignore[call-arg, arg-type, misc]
    for make in wrong:
        with pytest.raises(TypeError):
            make()
    with pytest.raises(ValueError, match="negative"):
        Filled(-1)
    with pytest.raises(FrozenInstanceError):
        Filled(1).first = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Filled(1).first


def test_each_has_a_default_of_its_own() -> None:
    assert Filled(1).third is not Filled(1).third
    assert Passage("a").metadata is not Passage("a").metadata


def test_arguments_are_those_that_dataclass_gives() -> None:
    for kind in (Response, RobustAnswer, Passage):
        found = signature(kind).parameters
        assert {f.name for f in fields(kind)} == set(found)
        assert [p.name for p in found.values() if p.default is p.empty] == {
            Response: ["text"],
            RobustAnswer: ["text", "radius", "abstained", "query", "defense"],
            Passage: ["text"],
        }[kind]
    assert hash(Response("a")) == hash(Response("a"))
    assert pickle.loads(pickle.dumps(Response("a", finish="stop"))) == Response("a", finish="stop")


def test_a_class_that_cannot_be_filled_is_refused() -> None:
    @dataclass(frozen=True)
    class Computed:
        value: int = field(init=False, default=0)

    with pytest.raises(TypeError, match="Computed needs a dictionary"):
        filled_at_once(Computed)


def test_an_answer_is_changed_as_replace_does_it() -> None:
    answer = RobustAnswer("Bo Ek", 2, False, "Who?", "keyword", warnings=("a",))
    assert answer.changed(radius=1, warnings=()) == replace(answer, radius=1, warnings=())
    assert answer.radius == 2
    with pytest.raises(TypeError, match="colour"):
        answer.changed(colour="red")
