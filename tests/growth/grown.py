"""How much longer a call takes when its input is twice as long, in processor time, so that C code counts, too.

A call is first made longer until it takes long enough to be measured. What never does costs next to nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz.long import Endless, watched
from tests.growth.found import Function
from tests.growth.made import Matter

Prepare = Callable[[Matter], Callable[[], object]]
STEEP = 3.0  # times as long for a text of twice the length; linear is 2, quadratic 4
_FIRST = 500  # characters
_MOST = 16_000  # characters, but for what is looked at again
_ENOUGH = 0.001  # seconds that can be measured
_SUSPECT = 2.6  # times as long by the clock, which is then measured
_MEASURED = 0.1  # seconds of processor time, which systems count in hundredths
_SURE = 0.03  # seconds of a single call that can be measured so
_LONG = 2.0  # seconds that need no second look
_LONGEST = 20.0  # seconds of a single call

# What parsers stop at, go back over, look ahead for, or count; and what many short texts are made of.
UNITS = ("1", "+", "(", "<a ", '"', "/", "\\\\")
SHORT = ("1/",)
MORE = (
    "a", "A. ", "\n", "\u0301", " ", "\t", "\r\n", "a.", "a-", "-", "--", "_", "$", "%", "#", "=", ":", ";", ",", "&",
    "&#", "|", "~", "^", "@", "!", "?", ")", "]", "[", "{", "}", "<", ">", "</a>", "<!--", "'", "`", "``", "```\n",
    "*", "](", "[1]", "{{", "%(", "\\u", "http://", "a@", "//", "../", "a/", "x=", "?a=", "1. ", "1/", "1-", "1,",
    "-1", "0x", "- ", "\u200d", "\xe9", "\xe9 ", "\u4e2d", "\u3002", "\u0e01\u0e4d", "\ufdfa", "\u2028", "\U000e0041",
    "\ufe0f", "\x00", "\ud800", "yes ", "not ", "no, ", "and ", "I don't know", "Answer: ", "<think>", "</think>",
    '"a": ', "null",
)  # fmt: skip


@dataclass(frozen=True)
class Steep:
    """A call that takes much longer than its input is long."""

    function: str
    read: str
    unit: str
    many: bool
    size: int
    ratio: float
    seconds: float

    def __str__(self) -> str:
        how = "many short texts" if self.many else "one text"
        return (
            f"{self.function}({self.read}): {self.ratio:.1f} times as long for {self.size:,} characters of "
            f"{self.unit!r} in {how} as for half of them ({self.seconds:.3f} s)"
        )


def _seconds(prepare: Prepare, matter: Matter, clock: Callable[[], float], least: float = 0.0) -> float:
    """The time of a call, a refusal too; the mean of as many as take so many seconds together."""
    spent, times = 0.0, 0
    while not times or spent < least:
        call = prepare(matter)
        gc.disable()
        began = clock()
        try:
            call()
        except Exception:
            pass
        finally:
            spent += clock() - began
            times += 1
            gc.enable()
        if times > 50 and spent < least / 20:  # it hardly does anything
            return 0.0
    return spent / times


def steepness(prepare: Prepare, unit: str, many: bool, most: int) -> tuple[float, int, float]:
    """How many times as long it takes, and the longer one's size and seconds; 0 times if it hardly takes any time.

    A glance at the clock tells what to measure in processor time, of many runs.
    """

    def glance(size: int) -> float:
        return _seconds(prepare, Matter(unit, size, many), time.perf_counter)

    def measured(size: int) -> float:
        return _seconds(prepare, Matter(unit, size, many), time.process_time, _MEASURED)

    size = _FIRST
    seconds = glance(size)
    while seconds < _ENOUGH and size < most:
        size = most if seconds < _ENOUGH / 30 else min(most, size * 2)
        seconds = glance(size)
    for _ in range(4):  # others use the machine, too
        if seconds < _ENOUGH or seconds <= _SUSPECT * glance(size // 2):
            return 0.0, size, seconds
        seconds = min(seconds, glance(size))
    while seconds < _SURE:
        size *= 2
        seconds = glance(size)
    ratio = 0.0
    for _ in range(2):  # a slope, not a step
        seconds, half = measured(size), measured(size // 2)
        ratio = seconds / half if half else 0.0
        if ratio <= STEEP or seconds > _LONG:
            break
        size *= 2
    return ratio, size, seconds


def steep(function: Function, units: tuple[str, ...] = UNITS, most: int = _MOST) -> Iterator[Steep]:
    """Yield the inputs of a function that take too long, one for each of its parameters."""
    for read, many in function.shapes():
        for unit in SHORT if many else units:

            def prepare(matter: Matter, read: str = read) -> Callable[[], object]:
                try:
                    return function.call(read, matter)
                except Exception:
                    return lambda: None  # what its arguments are made of refuses the text

            try:
                with watched(_LONGEST):
                    ratio, size, seconds = steepness(prepare, unit, many, most)
            except Endless:
                ratio, size, seconds = float("inf"), 0, _LONGEST
            if ratio > STEEP:
                yield Steep(function.name, read, unit, many, size, ratio, seconds)
                break
