"""Finds tools that a model's provider runs: what they retrieve reaches the model and nothing of this package."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from robustrag_integrations.audit.findings import Finding

_SWITCHES = ("web_search_options", "search_parameters", "web_search", "enable_search")  # they turn a search on
_BUILT_IN = ("built_in_tools", "built_in_tool")
_NESTED = ("extra_body", "additional_kwargs", "model_kwargs", "generation_config", "config")  # hold arguments, too
_OWN_TYPES = (None, "", "function", "custom")  # of tools that the program runs, in the formats of all providers
_SCHEMAS = ("function", "input_schema", "parameters", "toolSpec")
_DECLARATIONS = ("function_declarations", "functionDeclarations")  # beside which each other key is a tool of its own
_FIX = "give it a retrieving tool of your own in its place"


def tool_names(argument: str, tools: Iterable[Any]) -> frozenset[str]:
    """Return the names in a list of tools or names; TypeError for one alone."""
    if isinstance(tools, str) or hasattr(tools, "name"):
        raise TypeError(f"{argument}={tools!r:.60} must be a list of tools or their names; wrap it: [{tools!r:.60}]")
    return frozenset(getattr(tool, "name", tool) for tool in tools)


def hosted_tools(tools: object, pass_through: Collection[str] = ()) -> list[str]:
    """Return the names of tools, in any provider's format, that are not known to be run by the program, nor named."""
    return [name for tool in _listed(tools) if isinstance(tool, Mapping) for name in _hosted(tool, pass_through)]


def hosted_in(arguments: Mapping[str, Any], pass_through: Collection[str] = ()) -> list[str]:
    """Return the hosted tools among the arguments of a model's calls, and the settings that switch a search on."""
    found = hosted_tools(arguments.get("tools"), pass_through)
    for key in _BUILT_IN:
        found += [
            name for tool in _listed(arguments.get(key)) for name in (hosted_tools([tool], pass_through) or [key])
        ]
    found += [key for key in _SWITCHES if arguments.get(key) not in (None, False)]
    for key in _NESTED:
        if isinstance(inner := arguments.get(key), Mapping):
            found += hosted_in(inner, pass_through)
    return list(dict.fromkeys(name[:60] for name in found))


def _listed(tools: object) -> list[object]:
    if not tools:
        return []
    return list(tools) if isinstance(tools, Iterable) and not isinstance(tools, (str, Mapping)) else [tools]


def _hosted(tool: Mapping[Any, Any], pass_through: Collection[str]) -> list[str]:
    kind, name = tool.get("type"), tool.get("name")
    if {str(kind), str(name)} & set(pass_through):
        return []
    if any(key in tool for key in _DECLARATIONS):
        return [str(key) for key in tool if key not in _DECLARATIONS and key not in pass_through]
    if kind in _OWN_TYPES and any(key in tool for key in _SCHEMAS):
        return []
    return [str(kind or name or next(map(str, tool), "?"))]


def hosted_tool(names: Collection[str], path: str, component: str, fix: str = _FIX) -> Finding:
    """Return the finding of a model that is offered tools which its provider runs."""
    problem = f"its provider runs {', '.join(names)}: what that finds reaches the model beside all isolation"
    return Finding("hosted-tool", path, component, problem, fix)


def hosted_result(names: Collection[str], path: str, component: str) -> Finding:
    """Return the finding of a model's message that was made from what a tool of its provider found."""
    problem = f"its provider ran {', '.join(names)}, and the model read what that found beside all isolation"
    return Finding("hosted-result", path, component, problem, _FIX)
