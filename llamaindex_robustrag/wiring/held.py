"""What is held by agents, tools and workflows: any object, function or class, and the texts that it gives away."""

from __future__ import annotations

from typing import Any

from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode
from pydantic import BaseModel

from llamaindex_robustrag.chat_engines import RobustCondensePlusContextChatEngine, RobustContextChatEngine
from llamaindex_robustrag.query_engine import RobustRAGQueryEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer, get_robust_response_synthesizer
from llamaindex_robustrag.wiring.bound import Bound, bound_of, parameters, with_self
from llamaindex_robustrag.wiring.holding import held_by, holds_nothing, is_atom, methods_of
from llamaindex_robustrag.wiring.identity import changes, function_in, is_a, of_library
from llamaindex_robustrag.wiring.responses import WHOLE
from llamaindex_robustrag.wiring.sources import INNER, READS, SHOWN, is_source, is_source_class, writes_only
from llamaindex_robustrag.wiring.uses import Unseen, Use, cells, uses_of
from llamaindex_robustrag.wiring.walk import ENGINE, Place, Steps, Visit, Walk
from robustrag_integrations.audit import Finding

_ROBUST: tuple[type, ...] = (
    RobustRAGSynthesizer,
    RobustRAGQueryEngine,
    RobustContextChatEngine,
    RobustCondensePlusContextChatEngine,
)


def held(walk: Walk, thing: object, place: Place) -> Steps:
    """Anything that there is no rule for."""
    if is_source(thing):
        if place.reader:
            yield exposed(type(thing).__name__, place)
    elif holds_nothing(thing):
        return
    elif is_a(thing, type):
        yield from _class(thing, place)
    elif (function := bound_of(thing)) is not None:
        yield from _function(walk, function, place)
    else:
        yield from (Visit(value, place.at(step)) for step, value in held_by(thing) if not is_atom(value))
        for name, value in methods_of(type(thing)):
            if (code := function_in(value)) is not None:
                yield Visit(with_self(code, thing), place.at(f".{name}"))
            else:
                yield Visit(value, place.at(f".{name}"))


def exposed(component: str, place: Place, why: str = "") -> Finding:
    """Something that hands out texts, held by who reads them."""
    reader = place.reader or "an agent"
    return Finding(
        "retrieving-workflow" if reader == "a workflow" else "retrieving-function",
        place.path,
        component,
        why or f"{reader} holds what hands out retrieved texts; they can reach its model as they are",
        f"use QueryEngineTool.from_defaults({ENGINE}) or such an engine in its place, or, if no text of it reaches a "
        "model, pass the function or class that holds it in trusted=[...]",
    )


def _class(kind: type, place: Place) -> Steps:
    for name, annotation in _fields(kind):
        if place.reader and is_source_class(annotation):
            yield exposed(kind.__name__, place, f"its field {name} brings what hands out retrieved texts")
    for name, value in methods_of(kind):
        code = function_in(value)
        yield Visit(Bound(code, {}) if code is not None else value, place.at(f".{name}"))


def _fields(kind: type) -> list[tuple[str, object]]:
    """The fields of a pydantic class with each class that their annotation names."""
    if not issubclass(kind, BaseModel):
        return []
    listed = getattr(kind, "__pydantic_fields__", None) or {}
    return [(name, part) for name, info in listed.items() for part in _flat(info.annotation)]


def _flat(annotation: Any, depth: int = 0) -> list[object]:
    inner = getattr(annotation, "__args__", ()) if depth < 5 else ()
    return [annotation, *(part for one in inner for part in _flat(one, depth + 1))]


def _function(walk: Walk, bound: Bound, place: Place) -> Steps:
    function = bound.function
    yield from (Visit(value, place.at(f".{name}")) for name, value in function.__dict__.items())
    if _only_writes(bound):
        return
    if of_library(function.__code__):
        owner = _owner(bound)
        if place.reader and function.__name__ in READS and walk.is_component(owner) and not is_source(owner):
            yield exposed(type(owner).__name__, place, f"{function.__name__}() gives what was retrieved as it is")
        yield from (Visit(value, place.at(f":{name}")) for name, value in [*cells(function), *bound.given.items()])
        return
    found = list(uses_of(bound, walk.stops, _isolates, place.entry))
    for use in found:
        if isinstance(use, Use):
            yield from _use(walk, use, place)
    known = any(isinstance(use, Use) and _reads(walk, use) for use in found)
    unseen = [use for use in found if isinstance(use, Unseen)]
    if place.reader and unseen and not known:
        first = unseen[0]
        yield exposed(function.__qualname__[-80:], place.at(f":{first.name}"), f"{first.why}, so it cannot be checked")


def _owner(bound: Bound) -> object:
    """What a method belongs to; None for a function."""
    return bound.given.get("self")


def _only_writes(bound: Bound) -> bool:
    """Whether it is a method of LlamaIndex that puts texts in, and nobody reads what it returns."""
    owner = _owner(bound)
    if is_a(owner, IngestionPipeline):
        return bound.result is not None and not changes(owner, IngestionPipeline)
    return is_source(owner) and writes_only(type(owner), bound.function.__name__)


def _use(walk: Walk, use: Use, place: Place) -> Steps:
    here = place.at(f":{use.name}")
    value = use.value
    if use.goes == "isolated":
        yield Visit(value, here.read_by(""))
    elif is_source_class(value):
        if place.reader and use.goes == "read":
            yield exposed(
                getattr(value, "__name__", "?"), here, "an index, store or reader is loaded inside a function"
            )
    elif is_source(value) and use.goes in ("written", "passed"):
        return
    elif is_a(value, Bound) or not _opens(walk, use):
        yield Visit(value, here)
    elif place.reader:
        yield exposed(type(value).__name__, here, "what an engine or object retrieves is read as it is")
        yield Visit(value, here)


def _opens(walk: Walk, use: Use) -> bool:
    """Whether a function reads what is inside an engine, or asks something for texts."""
    if use.goes != "read" or is_source(use.value):
        return False
    inside = READS | INNER | SHOWN | {WHOLE} if walk.is_component(use.value) else READS
    return bool(inside & set(use.rest)) and not is_a(use.value, (BaseNode, type))


def _reads(walk: Walk, use: Use) -> bool:
    source = is_source(use.value) or is_source_class(use.value)
    return use.goes == "read" and (source or _opens(walk, use))


def _isolates(thing: object) -> bool:
    """Whether something is a class of this project that isolates what it is given, its constructor, or its method."""
    if is_a(thing, Bound):
        names = parameters(thing.function)
        owner = thing.given.get(names[0]) if names and names[0] in ("self", "cls") else thing.function
        return _isolates(owner) or any(type(owner) is kind for kind in _ROBUST)
    return thing is get_robust_response_synthesizer or any(thing is kind for kind in _ROBUST)
