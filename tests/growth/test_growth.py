"""A page costs what it is long: nothing that reads what others write takes as many times as long again as it has grown.

What a call costs is how much longer it takes when its input is eight times as long, in processor time, so that C code
counts, too. Of a linear function it is 8 times as long, of a quadratic one 64 times. Calls of both lengths take turns,
and the least time of each counts: whatever else the machine does only ever adds to it, and passes.
"""

from __future__ import annotations

import gc
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.defenses.base import Defense
from tests.growth.hostile import (
    DEFENSES,
    OBJECTS,
    QUESTION,
    READERS,
    SMALL,
    Function,
    Matter,
    functions_of,
    passages_of,
    read_by,
)

# What parsers stop at, go back over, look ahead for, or count; and what many short texts are made of.
UNITS = (
    "1", "+", "(", "<a ", '"', "/", "\\\\", "](", "a.", "http://", "a://@", "?key=", "bearer ",
    "eyJaaaaaaaaa.", "answer is not A, ", "\u0301\u0316",
)  # fmt: skip
SHORT = "1/"
STEEP = 24.0
_TIMES = 8
_SIZES = ((4_000, 0.004), (32_000, 0.02))  # characters, and seconds below which a call is not looked at again
_MANY = 4_000  # characters of many short texts together
_TURNS = (3, 25)  # after which what is not steep, or is, is believed


def _seconds(prepare: Callable[[Matter], Callable[[], object]], matter: Matter) -> float:
    """The processor time of a call, a refusal too; nothing where its arguments refuse the text."""
    try:
        call = prepare(matter)
    except Exception:
        return 0.0
    began = time.process_time()
    try:
        found = call()
        if isinstance(found, Iterator):
            list(found)
    except Exception:
        return time.process_time() - began
    return time.process_time() - began


def is_steep(prepare: Callable[[Matter], Callable[[], object]], unit: str, many: bool) -> bool:
    """True if it takes more than `STEEP` times as long for eight times as much."""
    for size, enough in [(_MANY, _SIZES[0][1])] if many else _SIZES:
        if _seconds(prepare, Matter(unit, size, many)) > enough:
            return _ratio(prepare, Matter(unit, size, many), enough) > STEEP
    return False


def _ratio(prepare: Callable[[Matter], Callable[[], object]], matter: Matter, enough: float) -> float:
    short = long = float("inf")
    gc.disable()
    try:
        for turn in range(1, _TURNS[1] + 1):
            for number in range(3):  # different texts, of which nothing is kept, either
                shorter = replace(matter, size=matter.size // _TIMES, number=3 * turn + number)
                short = min(short, _seconds(prepare, shorter))
            long = min(long, _seconds(prepare, replace(matter, number=3 * turn)))
            if long < enough or (turn >= _TURNS[0] and long <= STEEP * short):
                return 0.0
    finally:
        gc.enable()
    return long / short if short else float("inf")


def steep(function: Function) -> Iterator[str]:
    """Yield the arguments of a function for which it takes much longer than they are long."""
    for argument in function.arguments:
        prepare = partial(function.call, argument)
        found = [unit for unit in UNITS if is_steep(prepare, unit, many=False)]
        found += [SHORT] if is_steep(prepare, SHORT, many=True) else []
        if found:
            yield f"{function.name}({argument}): {found}"


def runs(function: Function) -> bool:
    """Whether it takes harmless words; of others it is the refusal that is measured."""
    for many in (False, True):
        try:
            function.call("", replace(SMALL, many=many))()
        except Exception:
            continue
        return True
    return False


@pytest.mark.parametrize("reader", ["doors", *OBJECTS, *READERS])
def test_hostile_texts_cost_what_they_are_long(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    functions = functions_of(reader)
    assert any(map(runs, functions))
    assert [found for function in functions for found in steep(function)] == []


@pytest.mark.parametrize("method", DEFENSES)
def test_an_answer_costs_what_its_sources_are_long_and_many(method: type[Defense]) -> None:
    def prepare(matter: Matter) -> Callable[[], object]:
        defense, passages = method(CallableModel(lambda prompt: matter.text)), passages_of(matter)
        return lambda: defense.answer(QUESTION, passages)

    assert [unit for unit in UNITS if is_steep(prepare, unit, many=False)] == []
    assert not is_steep(prepare, SHORT, many=True)


def test_a_quadratic_function_is_found_by_what_it_takes() -> None:
    def growing(text: str) -> int:
        return sum(text.count("(", place) for place in range(0, len(text), 10))

    def pairing(names: Sequence[str]) -> bool:
        return all(one != other for one in names for other in names if one is not other)

    def linear(text: str) -> str:
        return "".join(character for character in text if character.isalnum())

    module = types.ModuleType("planted")
    for function in (growing, pairing, linear):
        function.__module__ = "planted"
        setattr(module, function.__name__, function)
    functions = [*read_by(module)]
    assert len(functions) == 3
    assert [one.partition("(")[0] for function in functions for one in steep(function)] == [
        "planted.growing",
        "planted.pairing",
    ]
