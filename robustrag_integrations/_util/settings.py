"""Declarations of settings, from which constructors, checks, files, flags and the reference are derived.

A setting is a key of a `TypedDict`, annotated with its type and a `Setting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from robustrag_integrations._util.checks import check_flag, is_whole_number


@dataclass(frozen=True)
class Setting:
    """The declaration of a setting, beside its type.

    Attributes:
        default: its value when nothing is given; None where that depends on the task, or is nothing.
        help: its meaning, for `--help` and docstrings.
        least: its minimum, if it is a number.
        most: its maximum.
        below: an upper bound that is itself excluded.
        threshold: True for a threshold, or what chooses between thresholds. These are flags of their own, and every row
            of an evaluation records them.
        is_function: True for a function that configurations and flags name as `module:function`.
        name: the key; read from the options.
        kind: `int`, `float`, `bool`, `str` for one of `values`, `object` for anything else; read from the type.
        values: the words of its `Literal` type.
        is_mapping: True if it may be a mapping from names; read from the type.
    """

    default: Any
    help: str
    least: float | None = None
    most: float | None = None
    below: float | None = None
    threshold: bool = False
    is_function: bool = False
    name: str = ""
    kind: type = object
    values: tuple[str, ...] = ()
    is_mapping: bool = False

    @property
    def is_number(self) -> bool:
        """True if its value is a number, which a config or a flag can hold."""
        return self.kind in (int, float)

    @property
    def is_choice(self) -> bool:
        """True if its value is one of a few words, which a config or a flag can hold."""
        return bool(self.values)

    def check(self, value: Any) -> Any:
        """Return a value that the declaration allows.

        Raises:
            ValueError: it does not; the message names the value, what is allowed and what it means.
            TypeError: it must be True or False.
        """
        if self.kind is bool:
            check_flag(**{self.name: value})
        if self.is_choice and value not in self.values and (isinstance(value, str) or self.kind is str):
            raise ValueError(f"{self.name}={value!r:.60} must be {' or '.join(map(repr, self.values))}")
        if self.is_number and not (value is None and self.default is None) and not self._allows(value):
            raise ValueError(f"{self.name}={value!r:.60} must {self.bounds}: {self.help}")
        return value

    @property
    def bounds(self) -> str:
        """The numbers that are allowed, in words."""
        if self.kind is int:
            most = "" if self.most is None else f" and at most {self.most:g}"
            return f"be a whole number of at least {self.least or 0:g}{most}"
        end = f"{self.most:g}]" if self.below is None else f"{self.below:g})"
        return f"lie in [{self.least:g}, {end}"

    def _allows(self, value: Any) -> bool:
        if self.kind is int:
            return is_whole_number(value, int(self.least or 0)) and (self.most is None or value <= self.most)
        if isinstance(value, str):
            return False
        try:
            number = value if isinstance(value, Fraction) else Fraction(str(value))  # True, nan and inf are none
        except (ValueError, ZeroDivisionError):
            return False
        inside = (self.least is None or self.least <= number) and (self.most is None or number <= self.most)
        return inside and (self.below is None or number < self.below)


def settings_in(options: type) -> tuple[Setting, ...]:
    """Return the settings that a `TypedDict` declares, in order."""
    return tuple(
        _named(name, *get_args(annotation))
        for name, annotation in get_type_hints(options, include_extras=True).items()
        if get_origin(annotation) is Annotated
    )


def _named(name: str, annotated: Any, setting: Setting) -> Setting:
    """Return a declaration with its name, and what its type says: kind and words."""
    kinds = get_args(annotated) if get_origin(annotated) in (Union, UnionType) else (annotated,)
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    values = tuple(word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind))
    chosen = next((kind for kind in (float, int, bool) if kind in kinds), str if values and len(kinds) == 1 else object)
    is_mapping = any(get_origin(kind) is Mapping for kind in kinds)
    return replace(setting, name=name, kind=object if is_mapping else chosen, values=values, is_mapping=is_mapping)
