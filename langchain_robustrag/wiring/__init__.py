"""A wiring check: where can retrieved text reach a model without isolation?

It reads how a chain, an agent, a graph or a tool is put together; it calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FunctionType, MethodType
from typing import Any

from langchain_core.runnables import Runnable

from langchain_robustrag.wiring.flows import CLEAN, STEPS, Rules, Walk
from langchain_robustrag.wiring.graphs import callable_flow, graph_flow, is_callable_node, is_graph
from langchain_robustrag.wiring.kinds import is_ours, loaded
from langchain_robustrag.wiring.tools import is_tool, is_tool_node, report_tool, tool_flow, tool_node_flow
from robustrag_integrations.audit import Finding
from robustrag_integrations.errors import UndefendedError

__all__ = ["Finding", "UndefendedError", "assert_defended", "find_undefended"]

_RULES: Rules = (
    (is_graph, graph_flow),
    (is_tool_node, tool_node_flow),
    (is_callable_node, callable_flow),
    (is_tool, tool_flow),
    *STEPS,
)


def find_undefended(program: object, *, trusted: Collection[object] = ()) -> list[Finding]:
    """Every place where retrieved text can reach a model without isolation, with its fix.

    Chains are followed step by step and key by key, graphs node by node; of functions it is seen what they hold
    (closures, defaults, globals, helpers, objects), not what they compute. A tool whose results cannot be traced to its
    own code is reported until it is trusted or named in a `RobustRetrievalMiddleware`.

    Args:
        program: a chain, an agent, a graph (compiled or not), a tool, a function, a middleware, or a list of them.
        trusted: what is fine: tools, functions, Runnables or other objects themselves, or classes of them. Names do not
            count, since anybody can take one.

    Returns:
        The findings; none for a program that is defended as far as can be seen.

    Raises:
        TypeError: nothing that can be looked into, or a name among `trusted`.
    """
    walk = Walk(_RULES, _trusting(trusted))
    if isinstance(program, (list, tuple)) and not program:
        raise TypeError("there is nothing to check in an empty list; pass what people use")
    _look(walk, program, "")
    return walk.found


def assert_defended(program: object, *, trusted: Collection[object] = ()) -> None:
    """Raise unless retrieved text reaches models in isolation only, as far as can be seen.

    Args:
        program: see `find_undefended`.
        trusted: see there.

    Raises:
        UndefendedError: it does not; the message lists every place and its fix.
        TypeError: nothing that can be looked into, or a name among `trusted`.
    """
    if found := find_undefended(program, trusted=trusted):
        raise UndefendedError(found)


def _look(walk: Walk, program: Any, path: str) -> None:
    if isinstance(program, (list, tuple)):
        for at, part in enumerate(program):
            _look(walk, part, f"{path}[{at}]")
    elif is_tool(program) and not is_ours(program):
        report_tool(walk, program, path)
    elif isinstance(program, Runnable) or is_graph(program):
        walk.flow(program, CLEAN, path)
    elif isinstance(program, (FunctionType, MethodType)) or is_ours(program) or _is_middleware(program):
        if not is_ours(program):
            walk.mixed(program, CLEAN, path)
    else:
        raise TypeError(
            f"cannot check a {type(program).__name__}; pass the chain, agent, graph, tool or function that people use"
        )


def _is_middleware(program: object) -> bool:
    return isinstance(program, loaded(("langchain.agents.middleware", "AgentMiddleware")))


def _trusting(trusted: Collection[object]) -> Callable[[object], bool]:
    if isinstance(trusted, str) or any(isinstance(item, str) for item in trusted):
        raise TypeError(f"trusted={trusted!r:.80} must hold the objects or classes themselves: a name proves nothing")
    classes = tuple(item for item in trusted if isinstance(item, type))
    return lambda value: any(value is item for item in trusted) or (bool(classes) and isinstance(value, classes))
