"""What metadata may hold where a grouping key is expected: each of these must not win votes, nor cost the answer."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel


class Unequal:
    """Not even equal to itself."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 1


class Raising:
    """Cannot be compared, but hashed."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparing")

    def __hash__(self) -> int:
        return 1


class RaisingHash:
    """Cannot be hashed."""

    def __hash__(self) -> int:
        raise RuntimeError("no hashing")


class ShiftingHash:
    """Has another hash every time."""

    def __init__(self) -> None:
        self._hash = 0

    def __hash__(self) -> int:
        self._hash += 1
        return self._hash


class NotAvailable:
    """Like pandas.NA: comparing gives itself, and it is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __hash__(self) -> int:
        return 1


class Named(NamedTuple):
    """A tuple with names."""

    name: str
    number: float


@dataclass(frozen=True)
class Record:
    """Compared by its fields."""

    name: str
    number: float


class Frozen(BaseModel, frozen=True):
    """Compared by its fields, as pydantic does it."""

    name: str
    number: float


def nested(depth: int) -> tuple[Any, ...]:
    value: tuple[Any, ...] = ()
    for _ in range(depth):
        value = (value,)
    return value


# Made anew for every passage, as a table or a parser would. These are no keys.
HOSTILE_KEYS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "nan": lambda: float("nan"),
    "numpy nan": lambda: np.float64("nan"),
    "numpy half nan": lambda: np.float16("nan"),
    "complex nan": lambda: complex("nan"),
    "decimal nan": lambda: Decimal("NaN"),
    "signalling decimal nan": lambda: Decimal("sNaN"),
    "no time": lambda: np.datetime64("NaT"),
    "no duration": lambda: np.timedelta64("NaT"),
    "list": lambda: ["a"],
    "dict": lambda: {"a": 1},
    "set": lambda: {"a"},
    "array": lambda: np.array([1.0, 2.0]),
    "list in a tuple": lambda: ("a", ["b"]),
    "unequal to itself": Unequal,
    "raises when compared": Raising,
    "raises when hashed": RaisingHash,
    "another hash each time": ShiftingHash,
    "neither true nor false": NotAvailable,
    "deeply nested": lambda: nested(100_000),
}
# Keys of which a part is None.
KEYS_WITH_NAN: dict[str, Callable[[], Any]] = {
    "nan in a tuple": lambda: ("a", float("nan")),
    "nan deep in a tuple": lambda: ("a", (1, ("b", np.float32("nan")))),
    "nan in a frozen set": lambda: frozenset([float("nan")]),
    "nan in a named tuple": lambda: Named("a", float("nan")),
    "nan in a dataclass": lambda: Record("a", float("nan")),
    "nan in a pydantic object": lambda: Frozen(name="a", number=float("nan")),
}
USABLE_KEYS: dict[str, Callable[[int], Any]] = {
    "text": lambda i: f"site {i}",
    "very long text": lambda i: f"{i}" * 300_000,
    "number": lambda i: i,
    "numpy number": np.int64,
    "numpy text": lambda i: np.str_(i),
    "decimal": Decimal,
    "tuple": lambda i: ("site", i),
    "frozen set": lambda i: frozenset([i, "site"]),
    "named tuple": lambda i: Named("a", i),
    "dataclass": lambda i: Record("a", i),
    "pydantic object": lambda i: Frozen(name="a", number=i),
    "day": lambda i: datetime.date(2020, 1, 1 + i),
    "bytes": lambda i: bytes([i]),
}
