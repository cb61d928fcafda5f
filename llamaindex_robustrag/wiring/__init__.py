"""A wiring check: where can retrieved text reach a model without isolation?

It reads how an engine, chat engine, agent or tool is put together; it calls nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaindex_robustrag.wiring.rules import RULES
from llamaindex_robustrag.wiring.walk import KNOWN, Walk
from robustrag_integrations.undefended import Finding, UndefendedError

__all__ = ["Finding", "UndefendedError", "assert_defended", "find_undefended"]


def find_undefended(engine: object, *, streaming: bool | None = None, trusted: Sequence[type] = ()) -> list[Finding]:
    """Every place where retrieved text can reach a model without isolation, with its fix.

    Args:
        engine: a query engine, chat engine, agent, workflow, tool, response synthesizer, retriever, or a list of them.
        streaming: whether you expect streamed responses. `as_query_engine(streaming=True, response_synthesizer=...)`
            drops the argument and leaves no trace; say here what you asked for, to have it compared.
        trusted: classes of your own that keep the documents apart and every node's source: postprocessors, retrievers,
            engines or tools.

    Returns:
        The findings, outermost first; none for an engine that is defended.

    Raises:
        TypeError: not an engine, agent, tool or the like.
    """
    if not isinstance(engine, (*KNOWN, list, tuple)):
        raise TypeError(
            f"cannot check a {type(engine).__name__}; pass the query engine, chat engine, agent or tool that people use"
        )
    return list(Walk(RULES, streaming, tuple(trusted)).visit(engine, ""))


def assert_defended(engine: object, *, streaming: bool | None = None, trusted: Sequence[type] = ()) -> None:
    """Raise unless retrieved text reaches models in isolation only.

    Args:
        engine: see `find_undefended`, as for the others.
        streaming: whether you expect streamed responses.
        trusted: classes of your own that keep the documents apart.

    Raises:
        UndefendedError: it does not; the message lists every place and its fix.
        TypeError: not an engine, agent, tool or the like.
    """
    if found := find_undefended(engine, streaming=streaming, trusted=trusted):
        raise UndefendedError(found)
