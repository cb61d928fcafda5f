"""Tools, agents and workflows: what they hold, and who reads what they return."""

from __future__ import annotations

from typing import Any

from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.wiring.bound import with_self
from llamaindex_robustrag.wiring.holding import methods_of
from llamaindex_robustrag.wiring.identity import attributes, function_in
from llamaindex_robustrag.wiring.walk import ENGINE, Place, Steps, Visit, Walk
from robustrag_integrations.audit import Finding

AGENT = "an agent"
WORKFLOW = "a workflow"
_STEPS = ("_step_config", "__step_config")  # what the decorator of steps leaves, of all versions
_MACHINERY = frozenset({"_dispatcher", "_runtime", "_serializer"})  # shared by all workflows of a process


def retriever_tool(walk: Walk, thing: RetrieverTool, place: Place) -> Steps:
    """The agent reads what was retrieved."""
    yield Finding(
        "retriever-tool",
        place.path,
        type(thing).__name__,
        "the agent's model reads the retrieved texts as they are; nothing is aggregated",
        f"use QueryEngineTool.from_defaults({ENGINE})",
    )


def loading_tool(walk: Walk, thing: object, place: Place) -> Steps:
    """It loads documents into an index of its own and asks that with a stock engine."""
    yield Finding(
        "loading-tool",
        place.path,
        type(thing).__name__,
        "it answers from an index of its own with a stock engine, which puts several documents into one prompt",
        f"build the index yourself and use QueryEngineTool.from_defaults({ENGINE})",
    )
    yield from walk.parts(thing, place.read_by(AGENT), "_tool")


def function_tool(walk: Walk, thing: FunctionTool, place: Place) -> Steps:
    """Its functions and what they are given."""
    held = attributes(thing)
    names = ("_real_fn", "_fn", "_async_fn", "_callback", "_async_callback", "partial_params", "_field_defaults")
    for name in names:
        yield Visit(held.get(name), place.at(f".{name}" if name != "_real_fn" else "").read_by(AGENT))


def agent(walk: Walk, thing: Any, place: Place) -> Steps:
    """Its tools, as far as they are known."""
    if getattr(thing, "tool_retriever", None) is not None:
        yield tools_unknown(thing.tool_retriever, f"{place.path}.tool_retriever")
    for at, tool in enumerate(getattr(thing, "tools", None) or ()):
        yield Visit(tool, place.at(f".tools[{at}]").read_by(AGENT))
    yield from walk.parts(thing, place, "agents")
    yield from walk.parts(thing, place.read_by(AGENT), "llm", "initial_state", "code_execute_fn")


def own_agent(walk: Walk, thing: Any, place: Place) -> Steps:
    """An agent of the user's: its tools, and what its own code uses."""
    yield from agent(walk, thing, place)
    yield from workflow(walk, thing, place)


def tools_unknown(thing: object, path: str) -> Finding:
    """Tools that are looked up for each question."""
    return Finding(
        "tool-retriever",
        path,
        type(thing).__name__,
        "the tools are only known when it runs, so they cannot be checked here",
        "check the list of tools before indexing it, with assert_defended(tools), and list the class in trusted=",
    )


def workflow(walk: Walk, thing: Workflow, place: Place) -> Steps:
    """What it holds, and what its steps use and are given."""
    here = place.read_by(WORKFLOW)
    for name, value in attributes(thing).items():
        if name not in _MACHINERY:
            yield Visit(value, here.at(f".{name}"))
    added = getattr(type(thing), "_step_functions", None) or {}
    for name, value in [*methods_of(type(thing)), *added.items()]:
        step = here.at(f".{name}")
        code = function_in(value)
        if code is None:
            yield Visit(value, step)
        else:
            entry = any(name in code.__dict__ for name in _STEPS)
            yield Visit(with_self(code, thing), Place(step.path, WORKFLOW, step.compares, entry))


def unknown(walk: Walk, thing: object, place: Place) -> Steps:
    """Something that is not known to isolate documents."""
    name = type(thing).__name__
    yield Finding(
        "unknown",
        place.path,
        name,
        "what it does with retrieved text is not known",
        f"answer with {ENGINE}, or, if it isolates documents itself, pass trusted=[{name}]",
    )


def nothing(walk: Walk, thing: object, place: Place) -> Steps:
    """Nothing to say."""
    return iter(())
