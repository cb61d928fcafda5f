"""Labels and grouping keys, which decide which passages belong together, made from whatever metadata holds.

Metadata is untrusted. A value that cannot be a key (a list, or an object that fails when it is compared) costs its own
passage its key and nothing else: it raises no error and wins no votes. NaN, in all its forms, is None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from numbers import Number
from pathlib import PurePath
from typing import TypeVar

from robustrag_integrations.errors import INTERRUPTS

T = TypeVar("T")


@dataclass(frozen=True)
class Keys:
    """The assignment of items to groups.

    Attributes:
        places: per item the number of its group, by first appearance. All items without a key share one group.
        keys: per item its key, None without one.
        missing: per item why it has no key (`None`, or the name of an exception), or None if it has one.
    """

    places: tuple[int, ...]
    keys: tuple[Hashable, ...]
    missing: tuple[str | None, ...]


def keys_of(items: Iterable[T], key: Callable[[T], object]) -> Keys:
    """Compare items by a key; an item for which `key` raises, or gives something unusable, has none."""
    known: dict[Hashable, int] = {}
    places, keys, missing = [], [], []
    for item in items:
        reason = None
        try:
            found = usable(key(item))
            place = known.setdefault(found, len(known))
        except INTERRUPTS:
            raise
        except BaseException as error:
            found, reason = None, type(error).__name__
            place = known.setdefault(None, len(known))
        places.append(place)
        keys.append(found)
        missing.append("None" if found is None and reason is None else reason)
    return Keys(tuple(places), tuple(keys), tuple(missing))


def usable(key: object) -> Hashable:
    """The key with None in place of whatever is not equal to itself (NaN, NaT), in tuples and frozen sets as well.

    Raises:
        Exception: the key cannot be hashed or compared.
    """
    if key is None or type(key) is str:
        return key
    if isinstance(key, tuple):
        return tuple(map(usable, key))
    if isinstance(key, frozenset):
        return frozenset(map(usable, key))
    if not isinstance(key, type) and (names := _compared(key)) is not None:
        hash(key)
        return type(key), *(usable(getattr(key, name)) for name in names)
    if hash(key) != hash(key):
        raise TypeError("the hash changes")
    return key if key == key else None


def _compared(key: object) -> list[str] | None:
    """The fields by which a dataclass or pydantic object is compared; None for anything else."""
    if is_dataclass(kind := type(key)):
        return [f.name for f in fields(kind) if f.compare] if kind.__dataclass_params__.eq else None  # type: ignore[attr-defined]
    named = getattr(kind, "model_fields", None)
    return list(named) if isinstance(named, dict) else None


def label(value: object) -> str | None:
    """The name that a value is: a text, a number or a path as str. None for anything else, for NaN and for nothing."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return str.__str__(value) or None
        named = isinstance(value, (Number, PurePath)) and not isinstance(value, bool) and bool(value == value)
        return str(value) if named else None
    except INTERRUPTS:
        raise
    except BaseException:  # a number that cannot be compared or written out
        return None
