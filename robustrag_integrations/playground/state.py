"""The checked state of a playground page. It comes from links and files of strangers, so all of it is bounded."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast, get_args

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method, Setting, entry_of
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE, SITE, Passage
from robustrag_integrations.prompts import OPEN_TASKS, Task

SCHEMA = "robustrag/playground/1"
SAVED = "playground"  # the entry of a saved report that holds the state
GROUPINGS = (ORIGIN, SITE, PASSAGE)
MOST_PASSAGES = 50
LONGEST_PASSAGE = 20_000  # characters
LONGEST_QUESTION = 4_000
LONGEST_NAME = 500  # of a source, an option, an answer
MOST_CHOICES = 20
LARGEST_NUMBER = 1_000  # of a setting
_FRACTION = re.compile(r"[0-9]{1,18}/[1-9][0-9]{0,17}", re.ASCII)
TASKS: tuple[Task, ...] = get_args(Task)


class StateError(ValueError):
    """A value is not a valid state; the message names the reason."""


@dataclass(frozen=True)
class Row:
    """A passage in the table.

    Attributes:
        text: the text that the model reads.
        source: who says so; empty: nobody else does, so that it has a vote of its own.
        planted: True if it is marked as the attacker's.
    """

    text: str
    source: str = ""
    planted: bool = False


@dataclass(frozen=True)
class State:
    """Everything that decides what the page shows.

    Attributes:
        question: the question.
        rows: the passages, best first.
        answer: the right answer, for verdicts and certificates; may be empty.
        target: the answer that the attacker wants; may be empty.
        choices: the options of a multiple-choice question.
        top_k: number of passages that are read; those below drop out, as they would of a retrieval.
        model: a name of those that are offered; empty for the first one.
        method: a method or baseline of the registry.
        task: what is answered, where the method does several things; None for its first.
        settings: of the method: numbers and words; the others keep their defaults.
        group_by: the unit of one vote.
    """

    question: str
    rows: tuple[Row, ...] = ()
    answer: str = ""
    target: str = ""
    choices: tuple[str, ...] = ()
    top_k: int = 10
    model: str = ""
    method: str = "consensus"
    task: Task | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    group_by: str = ORIGIN

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All passages, best first."""
        return tuple(passage_of(row, number) for number, row in enumerate(self.rows, 1))

    @property
    def benign(self) -> tuple[Passage, ...]:
        """The passages that are not marked as planted."""
        return tuple(p for p, row in zip(self.passages, self.rows, strict=True) if not row.planted)

    def as_dict(self) -> dict[str, Any]:
        """Return the state in JSON's types; `state_of` reads it back."""
        found = asdict(self)
        rows = [{name: value for name, value in row.items() if value} for row in found.pop("rows")]
        return {"schema": SCHEMA, **found, "choices": list(self.choices), "passages": rows}


def passage_of(row: Row, number: int) -> Passage:
    """Return a row as a passage; one without a source is its own source."""
    return Passage(row.text, id=f"passage-{number}", source=row.source or f"passage-{number}")


def state_of(found: Mapping[str, Any]) -> State:
    """Read a state from JSON.

    Raises:
        StateError: it is none, or is too large; the message names what is wrong.
    """
    known = {"schema", "passages", *(name for name in State.__dataclass_fields__ if name != "rows")}
    if found.get("schema", SCHEMA) != SCHEMA:
        raise StateError(f"schema is {found.get('schema')!r:.60}; must be {SCHEMA!r}")
    if unknown := sorted(set(found) - known):
        raise StateError(f"{unknown[0]!r:.60} is not part of a state")
    method = _method(found.get("method", "consensus"))
    return State(
        question=_text(found, "question", LONGEST_QUESTION),
        rows=tuple(_row(number, one) for number, one in enumerate(_list(found, "passages", MOST_PASSAGES), 1)),
        answer=_text(found, "answer", LONGEST_NAME),
        target=_text(found, "target", LONGEST_NAME),
        choices=tuple(_choice(one) for one in _list(found, "choices", MOST_CHOICES)),
        top_k=_top_k(found.get("top_k", 10)),
        model=_text(found, "model", LONGEST_NAME),
        method=method.name,
        task=_one_of("task", found.get("task"), (None, *TASKS)),
        settings=_settings(method, found.get("settings", {})),
        group_by=_one_of("group_by", found.get("group_by", ORIGIN), GROUPINGS),
    )


def state_of_report(report: Mapping[str, Any]) -> State:
    """Read the state behind a report of `robustrag ask --json`, as far as it is there; all of it if a page saved it.

    Raises:
        StateError: it is no such report.
    """
    saved = report.get(SAVED)
    if isinstance(saved, dict):
        return state_of(saved)
    answer, passages = report.get("answer"), report.get("passages")
    if not isinstance(answer, dict) or not isinstance(passages, list):
        raise StateError("the report has no answer, or no passages")
    name, settings = answer.get("defense"), answer.get("settings")
    given = settings if isinstance(settings, dict) else {}
    method = _method(name)
    known = [s for s in settable(method) if not s.is_choice or given.get(s.name) in s.values]
    kept = {s.name: _number(given[s.name]) for s in known if given.get(s.name) is not None}
    rows = [{"text": p.get("text"), "source": p.get("source") or ""} for p in passages if isinstance(p, dict)]
    return state_of(
        {
            "question": answer.get("query"),
            "passages": rows,
            "top_k": min(max(len(rows), 1), MOST_PASSAGES),
            "method": name,
            "settings": kept,
            "task": given.get("task") if given.get("task") in OPEN_TASKS else None,
        }
    )


def settable(method: Method) -> tuple[Setting, ...]:
    """Return the settings that a page can hold: numbers and words, no functions."""
    return tuple(s for s in method.settings if s.is_number or s.is_choice)


def _method(name: object) -> Method:
    if not isinstance(name, str) or not (name in METHODS or name in BASELINES):
        raise StateError(f"method {name!r:.60} is unknown; use one of {', '.join([*METHODS, *BASELINES])}")
    return entry_of(name)


def _number(value: Any) -> Any:
    """Parse the exact fractions of reports, such as 3/10; anything else is left as it is for the later check."""
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        above, _, below = value.partition("/")
        return int(above) / int(below)
    return value


def _text(found: Mapping[str, Any], name: str, longest: int) -> str:
    return _bounded(found.get(name, ""), name, longest)


def _bounded(value: object, name: str, longest: int) -> str:
    if not isinstance(value, str):
        raise StateError(f"{name} must be a text, got {type(value).__name__}")
    if len(value) > longest:
        raise StateError(f"{name} is longer than {longest:,} characters; shorten it")
    return valid_text(value)


def _list(found: Mapping[str, Any], name: str, most: int) -> list[Any]:
    value = found.get(name, [])
    if not isinstance(value, list) or len(value) > most:
        raise StateError(f"{name} must be a list of at most {most}")
    return value


def _row(number: int, given: object) -> Row:
    name = f"passage {number}"
    if not isinstance(given, dict) or set(given) - {"text", "source", "planted"}:
        raise StateError(f"{name} must be an object with text, and may have source and planted")
    planted = given.get("planted", False)
    if not isinstance(planted, bool):
        raise StateError(f"{name}: planted must be true or false")
    text = _bounded(given.get("text", ""), name, LONGEST_PASSAGE)
    return Row(text, _bounded(given.get("source", ""), f"the source of {name}", LONGEST_NAME), planted)


def _choice(given: object) -> str:
    return _bounded(given, "an option", LONGEST_NAME)


def _top_k(given: object) -> int:
    if not is_whole_number(given, 1, MOST_PASSAGES):
        raise StateError(f"top_k must be a whole number from 1 to {MOST_PASSAGES}")
    return given


def _one_of(name: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    if (given is not None and not isinstance(given, str)) or given not in allowed:
        raise StateError(f"{name} is {given!r:.60}; use one of {', '.join(map(str, allowed))}")
    return given


def _settings(method: Method, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise StateError("settings must be an object")
    known = {s.name: s for s in settable(method)}
    if foreign := sorted(set(given) - set(known)):
        raise StateError(f"{method.name} has no setting {foreign[0]!r:.60}; it has {', '.join(known) or 'none'}")
    return {name: _value(known[name], value) for name, value in given.items()}


def _value(setting: Setting, given: Any) -> Any:
    if setting.is_choice:
        return _one_of(setting.name, given, setting.values)
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not number or not math.isfinite(given) or abs(given) > LARGEST_NUMBER:
        raise StateError(f"{setting.name} must be a number of at most {LARGEST_NUMBER:,}, got {given!r:.60}")
    if setting.kind is int and given != int(given):
        raise StateError(f"{setting.name} must be a whole number, got {given!r}")
    return cast(Any, setting.kind)(given)
