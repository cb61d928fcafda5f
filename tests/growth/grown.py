"""How much longer a call takes when its input is eight times as long, in processor time, so that C code counts, too.

Of a linear function it is 8 times as long, of a quadratic one 64 times. Calls of both lengths take turns, and the least
time of each counts: whatever else the machine does only ever adds to it, and passes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.growth.found import Function
from tests.growth.made import Matter, forget

# What parsers stop at, go back over, look ahead for, or count; and what many short texts are made of.
UNITS = ("1", "+", "(", "<a ", '"', "/", "\\\\")
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
        call()
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
            forget()  # what earlier calls have computed of an object
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
    """Yield the parameters of a function of which it takes much longer than they are long, with a text that does it."""
    for read, many in function.shapes():
        for unit in (SHORT,) if many else UNITS:
            if is_steep(partial(function.call, read), unit, many):
                yield f"{function.name}({read}): {unit!r} in {'many short texts' if many else 'one text'}"
                break
