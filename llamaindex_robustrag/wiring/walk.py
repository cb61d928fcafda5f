"""The walk over what an engine is made of: bounded, each object once, and no code of the user's is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from llamaindex_robustrag.wiring.bound import Bound
from llamaindex_robustrag.wiring.identity import changes, is_a, is_trusted
from llamaindex_robustrag.wiring.postprocessors import postprocessor_findings
from llamaindex_robustrag.wiring.sources import is_source, is_source_class
from robustrag_integrations.audit import Finding

ENGINE = "RobustRAGQueryEngine.from_args(retriever, llm=llm)"
MOST = 50_000  # objects that one walk looks at


@dataclass(frozen=True)
class Place:
    """Where the walk is.

    Attributes:
        path: how it got there, such as `._query_engine`.
        reader: who reads what is held here as it is: `an agent` or `a workflow`; empty where a robust engine does.
        compares: whether what was asked for (streaming and the like) is compared here.
        entry: whether a function's arguments come from outside when it runs.
    """

    path: str = ""
    reader: str = ""
    compares: bool = True
    entry: bool = False

    def at(self, step: str) -> Place:
        """One step further."""
        return replace(self, path=(self.path + step)[-400:], entry=False)

    def read_by(self, reader: str) -> Place:
        """The same place, where this one reads what is held."""
        return replace(self, reader=reader)


@dataclass(frozen=True)
class Visit:
    """Something that is to be looked at."""

    thing: object
    place: Place


Steps: TypeAlias = Iterator[Finding | Visit]
Rule: TypeAlias = Callable[["Walk", Any, Place], Steps]


@dataclass
class Walk:
    """One walk.

    Attributes:
        rules: what to say about a thing of this very class, or of a subclass that changes nothing of it.
        open_kinds: those classes of the rules that are made to be derived from.
        held: what to say about anything else.
        asked: what the engine was asked for: `streaming`, `output_cls`, `text_qa_template`, `response_mode`.
        trusted: objects, functions and classes that are not looked into.
    """

    rules: Mapping[type, Rule]
    open_kinds: frozenset[type]
    held: Rule
    asked: Mapping[str, Any]
    trusted: Sequence[object]
    seen: dict[tuple[object, ...], object] = field(default_factory=dict)

    def findings(self, thing: object) -> Iterator[Finding]:
        """The findings about an object and what it is made of, outermost first."""
        stack: list[Steps] = [iter([Visit(thing, Place())])]
        said: set[Finding] = set()
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, Visit):
                stack.append(self._look(found))
            elif found not in said:
                said.add(found)
                yield found
            if len(self.seen) > MOST:
                yield Finding(
                    "too-large",
                    "",
                    type(thing).__name__,
                    f"it is made of more than {MOST} objects, and what lies behind them was not looked at",
                    "check its parts, or pass those that read no documents in trusted=",
                )
                return

    def is_component(self, thing: object) -> bool:
        """Whether a thing is an engine, tool, agent or the like, which is judged as a whole."""
        return self.rule_of(thing) is not None

    def stops(self, thing: object) -> bool:
        """Whether a thing is judged as a whole, so that nothing is asked about its attributes."""
        return is_trusted(thing, self.trusted) or is_source(thing) or is_source_class(thing) or self.is_component(thing)

    def rule_of(self, thing: object) -> tuple[type, Rule] | None:
        """The first class of a thing that there is a rule for, and the rule."""
        return next(((kind, self.rules[kind]) for kind in type(thing).__mro__ if kind in self.rules), None)

    def parts(self, thing: object, place: Place, *names: str) -> Iterator[Visit]:
        """These attributes, as far as there are any."""
        for name in names:
            if (part := getattr(thing, name, None)) is not None:
                yield Visit(part, place.at(f".{name}"))

    def postprocessors(self, thing: object, place: Place) -> Iterator[Finding]:
        """The findings about an engine's postprocessors."""
        listed = getattr(thing, "_node_postprocessors", None) or ()
        return postprocessor_findings(listed, f"{place.path}._node_postprocessors", self.trusted)

    def _look(self, visit: Visit) -> Steps:
        thing, place = visit.thing, visit.place
        if is_trusted(thing, self.trusted):
            return
        chosen = self.rule_of(thing)
        own = thing.key if is_a(thing, Bound) else (id(thing),)
        key = (*own, place.reader if chosen is None or is_source(thing) else "", place.entry)
        if key in self.seen:
            return
        self.seen[key] = thing
        if (place.reader and is_source(thing)) or chosen is None:
            yield from self.held(self, thing, place)
        else:
            kind, rule = chosen
            if kind not in self.open_kinds and (changed := changes(thing, kind)):
                yield overridden(thing, kind, changed, place.path)
            yield from rule(self, thing, place.read_by(""))


def overridden(thing: object, kind: type, changed: Sequence[str], path: str) -> Finding:
    """A subclass that may do anything."""
    name = type(thing).__name__
    return Finding(
        "overridden",
        path,
        name,
        f"it redefines {', '.join(changed[:5])} of {kind.__name__}, so that what it does with retrieved text is not "
        "known",
        f"use {kind.__name__} as it is, or, if it keeps documents apart, pass trusted=[{name}]",
    )
