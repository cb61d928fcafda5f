"""The registry of aggregation methods: the name, settings, needs and class of each.

A setting is declared once: a key of a method's options, annotated with its type and a `Setting`. Constructors, checks,
settings files, command-line flags, evaluation configurations, both integrations and the reference are derived from it.

1. The package of a method (`defenses/NAME/__init__.py`) declares its options and registers a `Method`.
2. Its class is a dotted name, so that reading the tables loads neither numpy nor torch.
3. `Method.checked` turns user arguments into values: every setting, checked against its declaration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from robustrag_integrations._util.entry_points import Table
from robustrag_integrations._util.settings import Setting as Setting  # for packages that add methods
from robustrag_integrations._util.settings import settings_in

if TYPE_CHECKING:
    from robustrag_integrations.prompts import Task

Need = Literal["text", "probabilities"]


@dataclass(frozen=True)
class Method:
    """A method of aggregating isolated responses.

    Attributes:
        name: the name that users write: `aggregation=`, `--defense`, the answer's `defense`.
        summary: in one line, for `--help`.
        tasks: the tasks it answers; the first one is its default.
        needs: `text` for any model, `probabilities` for a model that gives next-token probabilities.
        defense: `module:Class` of its front door, a `Defense`.
        options: a `TypedDict` of its settings, besides `task`, `prompts` and the grouping.
        prompts: the prompts of a `PromptSet` that it uses besides the isolated one.
    """

    name: str
    summary: str
    tasks: tuple[Task, ...]
    needs: Need
    defense: str
    options: type
    prompts: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Its settings, thresholds first."""
        return tuple(sorted(settings_in(self.options), key=lambda s: not s.threshold))

    @property
    def asks_once_more(self) -> bool:
        """True if it may ask once more about what was agreed on; for that call it takes another model, or a schema."""
        return not {"keyword", "wording"}.isdisjoint(self.prompts)

    @property
    def takes_choices(self) -> bool:
        """True if it answers multiple-choice questions."""
        return "multiple_choice" in self.tasks

    @property
    def needs_probabilities(self) -> bool:
        """True if it works on next-token probabilities, which not every model gives."""
        return self.needs == "probabilities"

    @property
    def thresholds(self) -> tuple[Setting, ...]:
        """The thresholds among the settings."""
        return tuple(s for s in self.settings if s.threshold)

    @property
    def flags(self) -> tuple[Setting, ...]:
        """The settings that are options of the command line: thresholds, what is one of a few words, and functions."""
        return tuple(s for s in self.settings if s.threshold or s.is_choice or s.is_function)

    @property
    def class_name(self) -> str:
        """The front door's name in Python."""
        return self.defense.partition(":")[2]

    def default(self, name: str) -> Any:
        """Return the default of a setting."""
        return next(s.default for s in self.settings if s.name == name)

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value for every setting: the given one, or for None the default.

        Raises:
            ValueError: a name that is no setting, or a value that its declaration does not allow; the message names it
                and the fix.
        """
        self.check_names(given)
        return {s.name: s.check(s.default if given.get(s.name) is None else given[s.name]) for s in self.settings}

    def in_force(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the thresholds: the given ones, and the defaults of the others.

        Raises:
            ValueError: a value that is not allowed; the message names it and the fix.
        """
        return {s.name: s.check(s.default if given.get(s.name) is None else given[s.name]) for s in self.thresholds}

    def check_task(self, task: Task | None) -> Task:
        """Return the task, or the method's first one for None.

        Raises:
            ValueError: the method does not do it; the message names the methods that do.
        """
        if task is None:
            return self.tasks[0]
        if task in self.tasks:
            return task
        others = [m.class_name for m in METHODS.values() if task in m.tasks]
        fix = f"; use {' or '.join(others)} for {str(task).replace('_', ' ')}" if others else ""
        raise ValueError(f"task={task!r}: {self.name} does {' and '.join(map(repr, self.tasks))}{fix}")

    def check_names(self, names: Collection[str], also: Collection[str] = ()) -> None:
        """Check that all of these settings are the method's own (or among `also`).

        Raises:
            ValueError: one is not; the message lists what the method takes.
        """
        known = (*(s.name for s in self.settings), *also)
        if foreign := sorted(set(names) - set(known)):
            raise ValueError(
                f"aggregation={self.name!r} has no {', '.join(foreign)}; it takes {', '.join(known) or 'no settings'}"
            )

    def load(self) -> Any:
        """Return the front door's class, a subclass of `Defense`."""
        module, _, name = self.defense.partition(":")
        return getattr(import_module(module), name)

    def build(self, model: Any, **given: Any) -> Any:
        """Return the front door, a `Defense`, around a model; `given`: `task`, `prompts`, settings and grouping.

        Raises:
            ValueError, TypeError: an invalid argument, or a model that does not give what the method needs.
        """
        return self.load()(model, **given)

    def settings_of(self, given: Mapping[str, Any]) -> Any:
        """Return checked settings (`MethodSettings`) from user arguments, prompts and task among them.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        return self.load().settings_type.of(**given)


def _method(name: str, found: object) -> Method:
    """Check that another package's entry point names a method, and return it as an entry of the table.

    Raises:
        TypeError, ValueError: it is none, or may not have this name.
        Exception: what its module raises.
    """
    if not isinstance(found, Method):
        raise TypeError(f"must be a Method of defenses.registry, got {type(found).__name__}")
    if found.name != name:
        raise ValueError(f"is named {found.name!r}; give the entry point the same name")
    if name in BASELINES or name == "no-rag":
        raise ValueError("has the name of a baseline")
    if not hasattr(found.load(), "settings_type"):  # loaded here, so that what fails in it fails in nobody's answer
        raise TypeError(f"{found.defense} is no Defense")
    return found


METHODS: Table[Method] = Table("robustrag.methods", {}, _method)
"""The methods with a radius, by name: these and those of other packages."""

BASELINES: Table[Method] = Table(None, {}, _method, module="robustrag_integrations.evaluation.baselines")
"""The baselines to compare with, by name; each has the radius 0."""


def register(method: Method, table: Table[Method] = METHODS) -> Method:
    """Add a method that ships to the table, and return it; its package does so."""
    table[method.name] = method
    return method


def described(method: Method, indent: str) -> str:
    """Return the settings for a docstring, one a line."""
    lines = (
        f"{s.name}: {s.help}{'' if s.default is None else f'; default {s.default!r}'}.".replace("..", ".")
        for s in method.settings
    )
    return "\n".join(fill(line, 120, initial_indent=indent, subsequent_indent=indent + "    ") for line in lines)


def entry_of(name: str) -> Method:
    """The method or baseline of this name; vanilla RAG for any other."""
    return BASELINES.get(name) or METHODS.get(name) or BASELINES["vanilla"]


def methods_that(trait: str) -> tuple[Method, ...]:
    """Return the methods whose front door has this trait (`takes_weights`, `decides_early`); loads all of them."""
    return tuple(method for method in METHODS.values() if getattr(method.load(), trait))


def default_method(task: Task | None, names: Collection[str] = ()) -> str:
    """Return the method used where none is named: the first one that does the task and takes all that is given.

    Args:
        task: the kind of answer; None for short answers, or what the names say.
        names: the names of given settings and prompts (`keyword_prompt`), `choices` and `final_llm` among them.
    """
    for method in map(METHODS.__getitem__, ("consensus", "keyword", "voting", "decoding")):
        taken = {"task", "prompts", *(s.name for s in method.settings), *(f"{p}_prompt" for p in method.prompts)}
        taken |= {"final_llm", "final_model", "output_schema", "output_cls"} if method.asks_once_more else set()
        taken |= {"choices"} if method.takes_choices else set()
        if (task is None or task in method.tasks) and taken.issuperset(names):
            return method.name
    return "consensus"


def method_of(name: object) -> Method:
    """Return the method of this name.

    Raises:
        ValueError: there is none; the message lists those that there are.
    """
    found = METHODS.get(name) if isinstance(name, str) else None
    if found is None:
        why = "is a baseline of robustrag eval and ask" if name in tuple(BASELINES) else "is unknown"
        raise ValueError(f"aggregation={name!r} {why}; use one of {', '.join(map(repr, METHODS))}")
    return found
