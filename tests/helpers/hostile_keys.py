"""What metadata may hold where a grouping key is expected: each of these must not win votes, nor cost the answer."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np


class Unequal:
    """Not even equal to itself."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 1


class Raising:
    """Neither compared nor hashed."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparing")

    def __hash__(self) -> int:
        raise RuntimeError("no hashing")


class Named(NamedTuple):
    """A tuple with names."""

    name: str
    number: float


@dataclass(frozen=True)
class Record:
    """Compared by its fields, one of which need not be equal to itself."""

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
    "numpy half nan": lambda: np.float16("nan"),
    "signalling decimal nan": lambda: Decimal("sNaN"),
    "no time": lambda: np.datetime64("NaT"),
    "dict": lambda: {"a": 1},
    "array": lambda: np.array([1.0, 2.0]),
    "list in a tuple": lambda: ("a", ["b"]),
    "unequal to itself": Unequal,
    "raises": Raising,
    "dataclass": lambda: Record(float("nan")),
    "deeply nested": lambda: nested(100_000),
}
# Keys of which a part is None.
KEYS_WITH_NAN: dict[str, Callable[[], Any]] = {
    "nan deep in a tuple": lambda: ("a", (1, ("b", np.float32("nan")))),
    "nan in a frozen set": lambda: frozenset([float("nan")]),
    "nan in a named tuple": lambda: Named("a", float("nan")),
}
USABLE_KEYS: dict[str, Callable[[int], Any]] = {
    "text": lambda i: f"site {i}",
    "number": lambda i: i,
    "numpy number": np.int64,
    "numpy text": lambda i: np.str_(i),
    "decimal": Decimal,
    "tuple": lambda i: ("site", i),
    "frozen set": lambda i: frozenset([i, "site"]),
    "named tuple": lambda i: Named("a", i),
    "day": lambda i: datetime.date(2020, 1, 1 + i),
    "bytes": lambda i: bytes([i]),
}
