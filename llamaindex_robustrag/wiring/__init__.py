"""A wiring check: where can retrieved text reach a model without isolation?

It reads how an engine, chat engine, agent or tool is put together; it calls nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llamaindex_robustrag.wiring.held import held
from llamaindex_robustrag.wiring.rules import KNOWN, OPEN, RULES
from llamaindex_robustrag.wiring.walk import Walk
from robustrag_integrations.audit import Finding
from robustrag_integrations.errors import UndefendedError

__all__ = ["Finding", "UndefendedError", "assert_defended", "find_undefended"]


def find_undefended(
    engine: object,
    *,
    streaming: bool | None = None,
    output_cls: type | None = None,
    text_qa_template: Any = None,
    response_mode: Any = None,
    trusted: Sequence[object] = (),
) -> list[Finding]:
    """Every place where retrieved text can reach a model without isolation, with its fix.

    Attributes, slots, closures, defaults, containers and the objects that code names are read as they stand. What
    cannot be seen into (an engine, retriever or tool of one's own, a subclass that redefines a method, an index that
    is only loaded inside a function) is reported until it is listed in `trusted`.

    Args:
        engine: a query engine, chat engine, agent, workflow, tool, response synthesizer, retriever, or a list of them.
        streaming: whether you expect streamed responses. With a `response_synthesizer` of your own, `as_query_engine`
            drops this argument and leaves no trace; say here what you asked for, to have it compared.
        output_cls: the same for this argument,
        text_qa_template: and this,
        response_mode: and this one, which has no meaning for a robust synthesizer.
        trusted: classes, functions or objects that keep the documents apart and every node's source, or show no model
            what they retrieve. They are known by identity; a subclass that redefines a method is not its base.

    Returns:
        The findings, outermost first; none for an engine that is defended.

    Raises:
        TypeError: not an engine, agent, tool or the like.
    """
    if not isinstance(engine, (*KNOWN, list, tuple)):
        raise TypeError(
            f"cannot check a {type(engine).__name__}; pass the query engine, chat engine, agent or tool that people use"
        )
    if isinstance(engine, (list, tuple)) and not engine:
        raise TypeError("there is nothing to check in an empty list; pass what people use")
    asked = {
        "streaming": streaming,
        "output_cls": output_cls,
        "text_qa_template": text_qa_template,
        "response_mode": response_mode,
    }
    return list(Walk(RULES, OPEN, held, asked, tuple(trusted)).findings(engine))


def assert_defended(engine: object, **arguments: Any) -> None:
    """Raise unless retrieved text reaches models in isolation only.

    Args:
        engine: see `find_undefended`.
        arguments: those of `find_undefended`.

    Raises:
        UndefendedError: it does not; the message lists every place and its fix.
        TypeError: not an engine, agent, tool or the like.
    """
    if found := find_undefended(engine, **arguments):
        raise UndefendedError(found)
