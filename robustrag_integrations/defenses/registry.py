"""The registry of aggregation methods: the name, needs and class of each.

Its class is a dotted name, so that reading the table loads neither numpy nor torch; its settings are the fields of the
class's `settings_type`, from which checks, files, flags, configurations, integrations and the reference are derived.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from robustrag_integrations._util.checks import nearest_of, refuse_unknown
from robustrag_integrations._util.settings import Setting, settings_in
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.base import REPLY_LIMITS

if TYPE_CHECKING:
    from robustrag_integrations.text.prompts import Task


@dataclass(frozen=True)
class Method:
    """A method of aggregating isolated responses.

    Attributes:
        name: the name that users write: `method=`, `--method`, the answer's `method`.
        tasks: the tasks it answers; the first one is its default.
        needs: `text` for any model, `probabilities` for a model that gives next-token probabilities.
        front_door: `module:Class` of its class, a `Defense`.
        final_prompt: the prompt of a `PromptSet` by which it may ask once more about what was agreed on; for that call
            it takes another model, or a schema.
    """

    name: str
    summary: str
    tasks: tuple[Task, ...]
    needs: Literal["text", "probabilities"]
    front_door: str
    final_prompt: Literal["keyword", "object"] | None = None

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Its settings, thresholds first."""
        return settings_in(self.load().settings_type)

    @property
    def thresholds(self) -> tuple[Setting, ...]:
        """The thresholds among the settings."""
        return tuple(s for s in self.settings if s.threshold)

    @property
    def takes_choices(self) -> bool:
        """True if it answers multiple-choice questions."""
        return "multiple_choice" in self.tasks

    @property
    def needs_probabilities(self) -> bool:
        """True if it works on next-token probabilities, which not every model gives."""
        return self.needs == "probabilities"

    @property
    def class_name(self) -> str:
        """The front door's name in Python."""
        return self.front_door.partition(":")[2]

    def check_task(self, task: Task | None) -> Task:
        """Return the task, or the method's first one for None; ValueError if the method does not do it."""
        if task is None or task in self.tasks:
            return task or self.tasks[0]
        others = [m.class_name for m in METHODS.values() if task in m.tasks]
        fix = f"; use {' or '.join(others)} for {str(task).replace('_', ' ')}" if others else ""
        raise ValueError(f"task={task!r}: {self.name} does {' and '.join(map(repr, self.tasks))}{fix}")

    @property
    def further(self) -> set[str]:
        """The arguments that not every method has besides settings, under every name that a front door gives them."""
        found = {"final_llm", "output_schema", "output_cls"} if self.final_prompt else set()
        return found | {"choices"} if self.takes_choices else found

    def check_names(
        self,
        names: Collection[str],
        also: Collection[str] = (),
        *,
        near: Collection[str] = (),
        instead: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Raise TypeError for a setting that is nobody's, ValueError for another method's.

        Args:
            also: what else is taken.
            near: further arguments of the caller, which may have been meant.
            instead: what to write in place of arguments that are somewhere else.
        """
        known = (*(s.name for s in self.settings), *also)
        foreign = [name for name in names if name not in known]
        everybody = (*METHODS.values(), VANILLA)
        owners = {
            name: [m for m in everybody if name in {*m.further, *(s.name for s in m.settings)}] for name in foreign
        }
        limits = dict.fromkeys(REPLY_LIMITS, _LIMIT)
        nobodys = [n for n in foreign if n in {**limits, **instead} or (n not in {*RULES, *near} and not owners[n])]
        others = {*RULES, *(s.name for m in everybody for s in m.settings)} - limits.keys()
        refuse_unknown(nobodys, dict.fromkeys((*known, *near)), self.name, others=others, instead={**limits, **instead})
        for name in foreign:
            theirs = [f"method={m.name!r} ({m.class_name})" for m in owners[name]]
            fix = f"is for {' or '.join(theirs)}, and not for" if theirs else "does nothing for"
            raise ValueError(
                f"{name} {fix} method={self.name!r}, as here; name the method that you want, or leave it out"
            )

    def load(self) -> Any:
        """Return the front door's class, a subclass of `Defense`."""
        module, _, name = self.front_door.partition(":")
        return getattr(import_module(module), name)

    def build(self, model: Any, **given: Any) -> Any:
        """Return the front door, a `Defense`, around a model."""
        return self.load()(model, **given)

    def settings_of(self, given: Mapping[str, Any]) -> Any:
        """Return checked settings (`MethodSettings`) from user arguments, prompts and task among them."""
        self.check_names(given, ("task", "prompts"))
        return self.load().settings_of(**given)


_PACKAGE = "robustrag_integrations"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="keyword",
            summary="keep the keywords that enough sources share, answer from those alone; any model",
            tasks=("short_answer", "long_form"),
            needs="text",
            front_door=f"{_PACKAGE}.defenses.keyword.defense:KeywordAggregation",
            final_prompt="keyword",
        ),
        Method(
            name="decoding",
            summary="decode from the sum of all sources' next-token probabilities; a model that gives them",
            tasks=("short_answer", "long_form"),
            needs="probabilities",
            front_door=f"{_PACKAGE}.defenses.decoding.defense:DecodingAggregation",
        ),
        Method(
            name="voting",
            summary="majority vote over the options of a multiple-choice question; any model",
            tasks=("multiple_choice",),
            needs="text",
            front_door=f"{_PACKAGE}.defenses.voting.defense:MajorityVoting",
        ),
        Method(
            name="consensus",
            summary="one round: the whole answer that most sources give, in a source's own words; any model",
            tasks=("short_answer", "long_form", "list"),
            needs="text",
            front_door=f"{_PACKAGE}.defenses.consensus.defense:ConsensusAggregation",
            final_prompt="object",
        ),
    )
}
"""The methods with a radius, by name."""

VANILLA = Method(
    "vanilla",
    "no defence: one prompt, to compare with",
    ("short_answer", "multiple_choice", "long_form", "list"),
    "text",
    f"{_PACKAGE}.defenses.vanilla.defense:VanillaRAG",
)
BASELINES: dict[str, Method] = {VANILLA.name: VANILLA}
"""What methods are compared with, by name; none has a radius."""
_LIMIT = (
    "how long a reply may be is said where the model is made, such as LocalModel(max_new_tokens=...), "
    "OpenAIModel(max_tokens=...) or the chat model's own argument; method='decoding' alone has max_new_tokens itself"
)


def rules_and_settings(given: Mapping[str, Any], votes: VoteRules | None = None) -> tuple[VoteRules, dict[str, Any]]:
    """Return the rules of votes among the arguments that a user gives, and the other ones; None: not given."""
    given = {name: value for name, value in given.items() if value is not None}
    if votes is not None and not isinstance(votes, VoteRules):
        raise TypeError(f"votes must be VoteRules(...), got {type(votes).__name__}")
    for name, rule in {} if votes is None else votes.given.items():
        if given.setdefault(name, rule) != rule:
            raise ValueError(f"{name}={given[name]!r:.60} and votes.{name}={rule!r:.60}: give one of them")
    return VoteRules(**{name: given.pop(name) for name in RULES if name in given}), given


def described(settings: Collection[Setting], indent: str) -> str:
    """Return the settings for a docstring, one a line."""
    lines = (f"{s.name}: {'; '.join(filter(None, (s.help, s.default_in_words)))}.".replace("..", ".") for s in settings)
    return "\n".join(fill(line, 120, initial_indent=indent, subsequent_indent=indent + "    ") for line in lines)


def entry_of(name: str) -> Method:
    """The method or baseline of this name; vanilla RAG for any other."""
    return BASELINES.get(name) or METHODS.get(name) or VANILLA


def default_method(task: Task | None, choices: object = None) -> str:
    """Return the method used where none is named: voting where there are options, else consensus. Settings never
    choose it: one that belongs to another method is an error."""
    wanted = "multiple_choice" if task is None and choices is not None else task
    return "voting" if wanted in METHODS["voting"].tasks else "consensus"


def method_for(method: str | None, task: Task | None, choices: object = None) -> Method:
    """Return the method of this name; for None the default one."""
    return method_of(default_method(task, choices) if method is None else method)


def method_of(name: object) -> Method:
    """Return the method of this name; ValueError if there is none."""
    found = METHODS.get(name) if isinstance(name, str) else None
    if found is None:
        why = "is a baseline of robustrag eval and ask" if name in tuple(BASELINES) else "is unknown"
        near = nearest_of(name, METHODS) if isinstance(name, str) else None
        hint = "use one" if near is None else f"did you mean {near!r}? It is one"
        raise ValueError(f"method={name!r:.60} {why}; {hint} of {', '.join(map(repr, METHODS))}")
    return found
