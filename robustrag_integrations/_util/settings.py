"""Settings as fields of dataclasses, from which constructors, checks, flags and the reference are derived.

`setting` declares a field: its default, its meaning and its bounds; the type of the field says the rest. `settings_in`
reads them, and `check_settings` checks an object that has them. None stands for the default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from robustrag_integrations._util.checks import check_flag, check_text, is_whole_number

_KEY = "setting"


@dataclass(frozen=True)
class Setting:
    """What is known of a setting: its field's name and what its type says, and what `setting` declares.

    Attributes:
        kind: `int`, `float`, `bool`, `str` for one of `values` or, without any, a text, `object` for anything else.
        default: its value when nothing is given; None where that is nothing, or depends on more than the task.
        long_form: its default for long answers; None: the same.
        below: an upper bound that is itself excluded.
        threshold: True for a threshold, or what chooses between thresholds; every row of an evaluation records it.
        is_function: True for a function that configurations and flags name as `module:function`.
    """

    name: str
    kind: type
    values: tuple[str, ...]
    default: Any
    help: str
    long_form: Any = None
    least: float | None = None
    most: float | None = None
    below: float | None = None
    threshold: bool = False
    is_function: bool = False

    @property
    def is_number(self) -> bool:
        """True if its value is a number."""
        return self.kind in (int, float)

    @property
    def default_in_words(self) -> str:
        """Its default, also for long answers; empty where there is none."""
        if self.default in (None, False) or callable(self.default):
            return ""
        shown = self.default if isinstance(self.default, str) else repr(self.default)
        return f"default {shown}" + ("" if self.long_form is None else f", for long form {self.long_form!r}")

    def check(self, value: Any) -> None:
        """Raise ValueError or TypeError for a value that is not allowed."""
        if self.kind is bool:
            check_flag(**{self.name: value})
        if self.values and value not in self.values and (isinstance(value, str) or self.kind is str):
            raise ValueError(f"{self.name}={value!r:.60} must be {' or '.join(map(repr, self.values))}")
        if self.kind is str and not self.values:
            check_text(**{self.name: value})
        if self.is_number and not self._allows(value):
            raise ValueError(f"{self.name}={value!r:.60} must {self._bounds}: {self.help}")

    @property
    def _bounds(self) -> str:
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


def setting(default: Any, help: str, **more: Any) -> Any:
    """Declare a field of a dataclass as a setting; see `Setting` for the arguments."""
    declared = {"default": default, "help": help, **more}
    return field(default=None, metadata={_KEY: declared})  # `check_settings` knows the task


def settings_in(owner: Any) -> tuple[Setting, ...]:
    """Return the settings of a dataclass, thresholds first."""
    return _settings_in(owner)  # a class is hashable, whatever its objects are


@cache
def _settings_in(owner: Any) -> tuple[Setting, ...]:
    types = get_type_hints(owner)
    declared = {f.name: f.metadata[_KEY] for f in fields(owner) if _KEY in f.metadata}
    found = [Setting(name, *_read(types[name]), **more) for name, more in declared.items()]
    return tuple(sorted(found, key=lambda each: not each.threshold))


def check_settings(owner: Any, task: str | None = None) -> None:
    """Check the settings of an object, and put the task's defaults in place of None."""
    for each in settings_in(type(owner)):
        if (value := getattr(owner, each.name)) is not None:
            each.check(value)
        else:
            of_task = each.long_form if task == "long_form" and each.long_form is not None else each.default
            object.__setattr__(owner, each.name, of_task)


def _read(annotation: Any) -> tuple[type, tuple[str, ...]]:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    words = tuple(word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind))
    is_text = kinds == (str,) or (words and len(kinds) == 1)
    kind = next((kind for kind in (float, int, bool) if kind in kinds), str if is_text else object)
    return kind, words
