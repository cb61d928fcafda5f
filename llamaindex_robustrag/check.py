"""Runs one question through a program under a strict audit."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.audit import FIX, IsolationAudit
from robustrag_integrations.audit.prompts import Audit


def assert_defended(app: Any, question: str | Mapping[str, Any], *, trusted: Collection[str] = ()) -> None:
    """Ask a program one question, and raise if retrieved text reaches a prompt that is not isolated.

    The run-time audit listens, and is strict: text of a single source counts, too, and so does what tools say to
    agents. It vouches for what ran for this question, and for nothing else; see `IsolationAudit` for what it cannot
    see.

    Args:
        app: a query engine, a chat engine, an agent, a workflow, or a function that takes the question.
        question: what is asked. For a workflow of your own a mapping of its arguments; for a function whatever it
            takes.
        trusted: names of tools whose results nobody else writes.

    Raises:
        UndefendedError: what was found, each with the calls that led there; or nothing was retrieved.

    Examples:
        >>> assert_defended(agent, "Who won?", trusted=["add"])
    """
    with _checking(question, trusted):
        if isinstance(app, Workflow):
            asyncio_run(_ask(app, question))
        elif isinstance(app, BaseQueryEngine):
            str(app.query(question))
        elif isinstance(app, BaseChatEngine):
            app.chat(str(question))
        else:
            app(question)


async def aassert_defended(app: Any, question: str | Mapping[str, Any], *, trusted: Collection[str] = ()) -> None:
    """`assert_defended` in an event loop, by the asynchronous methods; a function as `app` may be asynchronous."""
    with _checking(question, trusted):
        await _ask(app, question)


async def _ask(app: Any, question: Any) -> None:
    if isinstance(app, BaseQueryEngine):
        await asyncio.to_thread(str, await app.aquery(question))  # a stream is read to its end
    elif isinstance(app, BaseChatEngine):
        await app.achat(question)
    elif isinstance(app, Workflow):
        await app.run(**(question if isinstance(question, Mapping) else {"user_msg": question}))
    elif isawaitable(reply := app(question)):
        await reply


@contextmanager
def _checking(question: Any, trusted: Collection[str]) -> Iterator[None]:
    audit = IsolationAudit()
    audit._audit, audit._trusted = Audit("log", FIX, strict=True), {*trusted, "handoff"}
    for text in question.values() if isinstance(question, Mapping) else [question]:
        audit._audit.release(str(text), agreed=True)  # documents may quote it
    audit.attach()
    try:
        with audit._audit.asserting():
            yield
    finally:
        audit.detach()
