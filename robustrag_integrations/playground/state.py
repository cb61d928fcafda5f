"""The checked state of a playground page: all of it is bounded, whoever sends it."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StrictBool, StrictInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method, entry_of
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE, SITE, Passage
from robustrag_integrations.text.prompts import Task

GROUPINGS = (ORIGIN, SITE, PASSAGE)
MOST_PASSAGES = 50
LONGEST_PASSAGE = 20_000  # characters
LONGEST_QUESTION = 4_000
LONGEST_NAME = 500  # of a source, an option, an answer
_CLOSED = ConfigDict(extra="forbid")

T = TypeVar("T")
_Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class StateError(ValueError):
    """A value is not a valid state; the message names the reason."""


@dataclass(frozen=True, config=_CLOSED)
class Row:
    """A passage in the table; with an empty source it has a vote of its own. Trusted ones are read together."""

    text: Annotated[str, Field(max_length=LONGEST_PASSAGE)]
    source: _Name = ""
    planted: StrictBool = False
    trusted: StrictBool = False


@dataclass(frozen=True, config=_CLOSED)
class State:
    """Everything that decides what the page shows.

    Of the rows, best first, all trusted ones are read and `top_k` of the others. An empty model is the first one; the
    task is one of the method's, None for its first; settings are numbers and words, the others keep their defaults.
    """

    question: Annotated[str, Field(max_length=LONGEST_QUESTION)] = ""
    rows: Annotated[tuple[Row, ...], Field(max_length=MOST_PASSAGES)] = ()
    answer: _Name = ""
    target: _Name = ""
    choices: Annotated[tuple[_Name, ...], Field(max_length=20)] = ()
    top_k: Annotated[StrictInt, Field(ge=1, le=MOST_PASSAGES)] = 10
    model: _Name = ""
    method: _Name = "consensus"
    task: Task | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    group_by: Literal["origin", "site", "passage"] = "origin"

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All passages, best first; one without a source is its own source."""
        named = ((row, f"passage-{number}") for number, row in enumerate(self.rows, 1))
        return tuple(Passage(row.text, id=name, origin=row.source or name) for row, name in named)

    @property
    def shelves(self) -> tuple[list[tuple[Row, Passage]], list[tuple[Row, Passage]]]:
        """The passages that are read, trusted ones and others, each with its row; no other displaces a trusted one."""
        rows = list(zip(self.rows, self.passages, strict=True))
        others = [each for each in rows if not each[0].trusted]
        return [each for each in rows if each[0].trusted], others[: self.top_k]

    @property
    def benign(self) -> tuple[Passage, ...]:
        """The passages that are neither trusted nor marked as planted."""
        named = zip(self.passages, self.rows, strict=True)
        return tuple(p for p, row in named if not row.planted and not row.trusted)

    def as_dict(self) -> dict[str, Any]:
        """Return the state in JSON's types; `state_of` reads it back."""
        return asdict(self)


_STATE, _ROWS = TypeAdapter(State), TypeAdapter(tuple[Row, ...])


def rows_of(given: object) -> tuple[Row, ...]:
    """Read the rows of a page's files from JSON; a StateError names what is wrong with them."""
    return _checked(_ROWS, "files", given)


def _checked(kind: TypeAdapter[T], name: str, given: object) -> T:
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StateError(f"{name} {place:.100}: {first['msg']}") from None


def state_of(given: object) -> State:
    """Read a state from JSON; a StateError names what is wrong with it."""
    state = _checked(_STATE, "state", given)
    if state.method not in METHODS and state.method not in BASELINES:
        raise StateError(f"method {state.method!r:.60} is unknown; use one of {', '.join([*METHODS, *BASELINES])}")
    known = [setting.name for setting in settable(entry_of(state.method))]
    if foreign := sorted(set(state.settings) - set(known)):
        raise StateError(f"{state.method} has no setting {foreign[0]!r:.60}; it has {', '.join(known) or 'none'}")
    return state


def settable(method: Method) -> tuple[Setting, ...]:
    """Return the settings that a page can hold: numbers and words, no functions."""
    return tuple(s for s in method.settings if s.is_number or s.values)
