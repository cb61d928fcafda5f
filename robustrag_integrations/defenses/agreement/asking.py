"""Asking each group alone for the keys of its reply, for keyword aggregation and consensus."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.errors import ModelError
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.models.base import Probed
from robustrag_integrations.plans.asking import Early, Quorum, Reading, ask_groups
from robustrag_integrations.plans.requests import ProbeReplies, Reply, Request
from robustrag_integrations.prompts import Prompt


class KeyAsking(Protocol):
    """The settings of a method that asks groups for keys."""

    @property
    def reader(self) -> ReplyReader:
        """The reader that turns a response into keys."""
        ...

    @property
    def quorum(self) -> Quorum:
        """The quorum of groups that must be asked with success."""
        ...

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        ...


Asking = TypeVar("Asking", bound=KeyAsking)


def settled(settings: Asking) -> Generator[Request, Reply, Asking]:
    """Return the settings, with a reader that knows whether this model's replies are objects or text.

    Raises:
        ModelError: they must be objects, and are not.
    """
    reader = settings.reader
    if reader.replies == "text":
        return settings
    reply = yield ProbeReplies()
    found = reply if isinstance(reply, Probed) else Probed()
    if reader.replies == "structured" and not found.way:
        raise ModelError(
            f"replies='structured' needs a model or a server that enforces a JSON schema, and this one replies in text "
            f"({found.why}); use replies='auto' or replies='text', or a server with response_format"
        )
    known = replace(reader, replies="structured" if found.way else "text")
    return replace(settings, reader=known)  # type: ignore[type-var]


def ask_for_keys(
    groups: Sequence[PassageGroup],
    settings: KeyAsking,
    reader: ReplyReader,
    query: str,
    early: Early[ReplyKeys] | None = None,
) -> Generator[Request, Reply, list[Reading[ReplyKeys]]]:
    """Ask each group alone, and read the keys of its reply.

    Raises:
        QuorumError: too many groups failed.
    """
    prompts = settings.isolated_prompts(query, groups)
    return (
        yield from ask_groups(
            groups,
            prompts,
            settings.quorum,
            reader.read,
            early,
            placed=reader.with_grounds,
            by_letter=True,
        )
    )
