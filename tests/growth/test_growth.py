"""A page costs what it is long: no public function takes as many times as long again as its text has grown.

Each of a module that reads what others write is called, or named in `known.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.defenses.base import Defense
from tests.growth.found import covered, functions_of, left_out, modules
from tests.growth.grown import SHORT, UNITS, is_steep, steep
from tests.growth.known import DEFENSES, QUESTION, passages_of
from tests.growth.made import Matter


def room_of(module: types.ModuleType) -> str:
    """The package of a module below the three."""
    return ".".join(module.__name__.split(".")[:2])


@pytest.mark.parametrize("room", sorted({room_of(module) for module in modules()}))
def test_hostile_texts_cost_what_they_are_long(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in modules():
        if room_of(module) == room:
            functions, unsaid = covered(module)
            assert not unsaid, "say in tests/growth/known.py how these are called, or that they are left out"
            assert [found for function in functions for found in steep(function)] == []


@pytest.mark.parametrize("method", DEFENSES)
def test_an_answer_costs_what_its_sources_are_long_and_many(method: type[Defense]) -> None:
    def prepare(matter: Matter) -> Callable[[], object]:
        defense, passages = method(CallableModel(lambda prompt: matter.text)), passages_of(matter)
        return lambda: defense.answer(QUESTION, passages)

    assert [unit for unit in UNITS if is_steep(prepare, unit, many=False)] == []
    assert not is_steep(prepare, SHORT, many=True)


def test_what_is_left_out_is_there() -> None:
    names = {function.name for module in modules() for function in functions_of(module)}
    assert left_out() <= names


def module_of(**functions: object) -> types.ModuleType:
    module = types.ModuleType("planted")
    for name, function in functions.items():
        function.__module__ = "planted"
        setattr(module, name, function)
    return module


def test_a_quadratic_function_is_found_and_a_new_one_is_called_or_told_of() -> None:
    def growing(text: str) -> int:
        return sum(text.count("(", place) for place in range(0, len(text), 10))

    def pairing(names: Sequence[str]) -> bool:
        return all(one != other for one in names for other in names if one is not other)

    def linear(text: str) -> str:
        return "".join(character for character in text if character.isalnum())

    def unknown(text: str, thing: types.TracebackType) -> None: ...

    def failing(text: str) -> None:
        raise ValueError(text)

    functions, unsaid = covered(
        module_of(growing=growing, pairing=pairing, linear=linear, unknown=unknown, failing=failing)
    )
    assert [name.split(":")[0] for name in unsaid] == ["planted.unknown", "planted.failing"]
    found = [one.partition("(")[0] for function in functions for one in steep(function)]
    assert sorted(found) == ["planted.growing", "planted.pairing"]
