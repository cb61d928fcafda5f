"""All doors walked: one thing has one name in Python, on the command line, in files and in data."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import typing
from collections.abc import Iterator
from types import ModuleType

import pytest

import robustrag_integrations
from robustrag_integrations.cli import command_parser
from robustrag_integrations.defenses.options import MethodOptions
from robustrag_integrations.evaluation.run.config import DEFAULTS
from robustrag_integrations.evaluation.score.rows import _Shape
from robustrag_integrations.text.prompts import TASKS

# What the one name is, and what else the thing has been called.
OTHER_NAMES = {
    "method": {"aggregation", "defense", "defence", "strategy", "algorithm"},
    "methods": {"aggregations", "defenses", "defences"},
    "model": {"llm_model", "language_model"},
    "min_support": {"min_votes", "support"},
    "passages": {"contexts", "chunks"},
    "votes": {"vote_rules"},
    "corruption_size": {"attackers", "num_corrupted"},
    "trusted": {"official"},
}
WRONG = set().union(*OTHER_NAMES.values())


def names_of(module: ModuleType) -> set[str]:
    """The parameters of a module's public functions, classes and their methods, and its classes' public attributes."""
    found: set[str] = set()
    for made in (getattr(module, name) for name in module.__all__):
        if not callable(made):
            continue
        parts = [made]
        if inspect.isclass(made) and made.__module__.startswith(module.__name__.partition(".")[0]):
            own = {name: part for name, part in vars(made).items() if not name.startswith("_")}
            found |= {*own, *getattr(made, "__annotations__", ())}
            parts += [part for part in own.values() if inspect.isfunction(part)]
        for part in parts:
            with contextlib.suppress(TypeError, ValueError):  # a type alias, or one of the interpreter's
                found |= set(inspect.signature(part).parameters)
    return found


def flags() -> Iterator[tuple[str, argparse.Action]]:
    [commands] = [a for a in command_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    for name, parser in commands.choices.items():
        yield from ((name, action) for action in parser._actions)


def doors() -> dict[str, set[str]]:
    return {
        "core": names_of(robustrag_integrations),
        "settings": set(typing.get_type_hints(MethodOptions)),
        "configurations": set(DEFAULTS),
        "flags": {option.lstrip("-").replace("-", "_") for _, action in flags() for option in action.option_strings},
        "rows": set(_Shape.__dataclass_fields__),
    }


def test_no_door_has_another_name_for_a_thing() -> None:
    pytest.importorskip("yaml")
    assert {door: names & WRONG for door, names in doors().items() if names & WRONG} == {}


@pytest.mark.parametrize("package", ["langchain_robustrag", "llamaindex_robustrag"])
def test_nor_has_an_integration(package: str) -> None:
    names = names_of(pytest.importorskip(package))
    assert "method" in names
    assert names & WRONG == set()


def test_the_names_of_a_thing_are_there_and_its_values_are_the_same_at_every_door() -> None:
    found = doors()
    assert {"method"} <= found["flags"] & found["rows"]
    assert {"task"} <= found["flags"] & found["settings"]
    assert {"data"} <= found["flags"] & found["configurations"]
    for command, action in flags():
        if "--task" in action.option_strings:
            assert set(action.choices or ()) <= set(TASKS), command
        if "--data" in action.option_strings:
            assert action.nargs == "+", command
