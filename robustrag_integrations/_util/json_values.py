"""JSON without NaN and with valid Unicode; converts frozen dataclasses to its types and back."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from robustrag_integrations._util.display import printable

T = TypeVar("T")


def parsed(text: str, **options: Any) -> Any:
    """Return the value of a JSON text; NaN and Infinity, which Python's parser takes, are a ValueError."""
    return json.loads(text, parse_constant=_refuse_constant, **options)


def valid_text(text: str) -> str:
    """Replace lone surrogates with U+FFFD: JSON can spell them, and tokenizers choke on them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(value: Any) -> Any:
    """Return the value in JSON's types; other types become their str."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return str(value)


def restored(kind: type[T], value: Any, place: str = "") -> T:
    """Restore a dataclass from the output of `plain`, without unknown names; a ValueError names what is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{place or kind.__name__} must be an object, got {type(value).__name__}")
    known: Any = kind
    hints, given = _hints(known), {}
    for field in fields(kind):  # type: ignore[arg-type]
        where = f"{place}.{field.name}" if place else field.name
        if field.name in value:
            given[field.name] = _of(hints[field.name], value[field.name], where)
    try:
        return kind(**given)
    except TypeError:
        missing = [f.name for f in fields(kind) if f.name not in given]  # type: ignore[arg-type]
        raise ValueError(f"{place or kind.__name__} lacks one of {', '.join(missing)}") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _of(hint: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        [hint] = [option for option in inner if option is not type(None)]
        return _of(hint, value, place)
    if origin is Literal:
        if value not in inner:
            raise ValueError(f"{place} must be one of {', '.join(map(str, inner))}, got {_shown(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{place} must be a list, got {_shown(value)}")
        return tuple(_of(inner[0], item, f"{place}[{i}]") for i, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{place} must be an object, got {_shown(value)}")
        return dict(value)
    if is_dataclass(hint):
        return restored(hint, value, place)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ValueError(f"{place} must be {hint.__name__}, got {_shown(value)}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shown(value: Any) -> str:
    return printable(repr(value), 60)
