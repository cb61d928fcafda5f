"""Graphs: what nodes write into the state, and which nodes show it to a model."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableLambda

from langchain_robustrag.graph import RobustNode
from langchain_robustrag.wiring.flows import CLEAN, Flow, Walk
from langchain_robustrag.wiring.holdings import reach
from langchain_robustrag.wiring.kinds import CALLABLE_NODES, is_ours, is_source, loaded
from langchain_robustrag.wiring.server_tools import lists_held
from langchain_robustrag.wiring.tools import is_tool_node, tool_node_flow
from langchain_robustrag.wiring.words import all_words, words_written

_GRAPHS = ("langgraph.pregel", "Pregel"), ("langgraph.graph.state", "StateGraph")


def is_graph(thing: object) -> bool:
    """Whether it is a graph of LangGraph, compiled or not, an agent for example."""
    return isinstance(thing, loaded(*_GRAPHS))


def is_callable_node(thing: object) -> bool:
    """Whether it is LangGraph's wrapper around a function."""
    return isinstance(thing, loaded(*CALLABLE_NODES))


def callable_flow(walk: Walk, thing: Any, given: Flow, path: str) -> Flow:
    """A function in LangGraph's wrapper."""
    found = CLEAN
    for function in _functions(thing):
        if not walk.trusted(function):
            found = found.joined(walk.mixed(function, given, path))
    return found


def graph_flow(walk: Walk, graph: Any, given: Flow, path: str) -> Flow:
    """The state of a graph, once nothing more reaches it."""
    builder = getattr(graph, "builder", graph)
    nodes = {name: _runnable(spec) for name, spec in builder.nodes.items() if not name.startswith("__")}
    channels = frozenset(name for name in builder.channels if not name.startswith(("__", "branch:")))
    state = dict(given.keys) if not given.whole else dict.fromkeys(channels, given.whole)
    shown = frozenset(_of_documents(builder))
    for name, node in nodes.items():
        _report_provider_tools(walk, node, f"{path}.nodes[{name!r}]")
    sent: dict[str, str] = {}
    for _ in range(len(nodes) + 1):
        before = (dict(state), dict(sent))
        for name, node in nodes.items():
            now = Flow(sent.get(name, ""), dict(state), channels - state.keys())
            for key, source in _written(walk, node, now, channels, shown, f"{path}.nodes[{name!r}]").items():
                state.setdefault(key, source)
        now = Flow(keys=dict(state), clean=channels - state.keys())
        sent |= _sent(walk, builder, now, list(nodes), path)
        if (state, sent) == before:
            break
    return now


def _sent(walk: Walk, builder: Any, now: Flow, nodes: list[str], path: str) -> dict[str, str]:
    """Look at what chooses the next node, and give the nodes that it sends retrieved text to with `Send`."""
    sent: dict[str, str] = {}
    for name, branches in getattr(builder, "branches", {}).items():
        for branch in branches.values():
            found = walk.flow(branch.path, now, f"{path}.branches[{name!r}]")
            names, words = all_words(next(iter(_functions(branch.path)), None))
            if found.source and "Send" in names:
                sent |= dict.fromkeys([n for n in nodes if n in words] or nodes, found.source)
    return sent


def _report_provider_tools(walk: Walk, node: Any, path: str) -> None:
    if is_callable_node(node) and not walk.trusted(node):
        for tools in (held for function in _functions(node) for held in lists_held(function)):
            walk.given_tools(tools, path)


def _written(
    walk: Walk, node: Any, state: Flow, channels: frozenset[str], shown: frozenset[str], path: str
) -> Mapping[str, str]:
    """What a node writes that is retrieved text, by key of the state."""
    if is_tool_node(node):
        return tool_node_flow(walk, node, state, path).keys
    if type(node) is RobustNode:
        return walk.flow(node, state, path).keys
    if not (is_callable_node(node) or isinstance(node, RunnableLambda)):
        found = walk.flow(node, state, path)
        return dict.fromkeys(channels, found.whole) if found.whole else dict(found.keys)
    written: dict[str, str] = {}
    for function in _functions(node):
        if walk.trusted(function) or walk.trusted(node):
            continue
        found = walk.mixed(function, state, path)
        keys = words_written(function) & channels or channels
        if found.whole:
            written |= dict.fromkeys(keys, found.whole)
        elif found.keys:  # the result of a chain of ours, as it is
            written |= found.keys
        elif source := _passed_on(walk, function):
            written |= dict.fromkeys(keys & shown, source)
    return written


def _passed_on(walk: Walk, function: Any) -> str:
    """A source next to our own chain: the documents may be in the state as well as the answer."""
    held = [value for _, value in reach([function], walk.trusted)]
    sources = [type(value).__name__ for value in held if is_source(value)]
    return sources[0] if sources and any(map(is_ours, held)) else ""


def _functions(node: Any) -> list[Any]:
    found: list[Any] = []
    for name in ("func", "afunc"):
        function = getattr(node, name, None)
        if isinstance(function, functools.partial) and function.args and callable(function.args[-1]):
            found.append(function.args[-1])  # a synchronous function, run in a thread
        elif function is not None and all(function is not f for f in found):
            found.append(function)
    return [f for at, f in enumerate(found) if all(f is not g for g in found[:at])]


def _runnable(spec: Any) -> Any:
    return getattr(spec, "runnable", None) or getattr(spec, "bound", spec)


def _of_documents(builder: Any) -> Iterator[str]:
    """The keys of the state that are declared to hold documents."""
    for schema in getattr(builder, "schemas", {}):
        try:
            hints = typing.get_type_hints(schema)
        except Exception:
            hints = dict(getattr(schema, "__annotations__", {}))
        yield from (name for name, hint in hints.items() if "Document" in str(hint))
