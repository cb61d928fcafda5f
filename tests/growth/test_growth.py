"""A page costs what it is long: no public function takes more than three times as long for twice as much hostile text.

`python -m tests.growth` tries more texts, and longer ones. CPU is measured where GROWTH is set in the environment, on
an idle machine; else it is only held that every public function is called or told of.
"""

from __future__ import annotations

import os
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.growth.found import covered, functions_of, left_out, modules
from tests.growth.grown import steep


def room_of(module: types.ModuleType) -> str:
    """The package of a module below the three."""
    return ".".join(module.__name__.split(".")[:2])


# Rooms that take long: what is public in them is told of, and `python -m tests.growth` measures it.
LONG = tuple(f"robustrag_integrations.{room}" for room in ("defenses", "evaluation", "models", "serve"))
MEASURED = bool(os.environ.get("GROWTH"))
ROOMS = sorted({room_of(module) for module in modules()})


@pytest.mark.parametrize("room", ROOMS)
def test_hostile_texts_cost_what_they_are_long(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in modules():
        if room_of(module) == room:
            functions, unsaid = covered(module)
            assert not unsaid, "say in tests/growth/known.py how these are called, or why they are left out"
            measured = functions if MEASURED and room not in LONG else ()
            assert [str(found) for function in measured for found in steep(function)] == []


def test_what_is_left_out_is_there() -> None:
    names = {function.name for module in modules() for function in functions_of(module)}
    assert left_out() <= names


def module_of(**functions: object) -> types.ModuleType:
    module = types.ModuleType("planted")
    for name, function in functions.items():
        function.__module__ = "planted"
        setattr(module, name, function)
    return module


@pytest.mark.skipif(not MEASURED, reason="measures CPU; set GROWTH=1")
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
    found = [one.function for function in functions for one in steep(function)]
    assert sorted(set(found)) == ["planted.growing", "planted.pairing"]
