"""Asking each group alone for the keys of its reply, for keyword aggregation and consensus."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.keywords.runs import ReplyKeys
from robustrag_integrations.plans.asking import Early, Quorum, Reading, ask_groups
from robustrag_integrations.plans.requests import Reply, Request
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
            by_letter=True,
        )
    )
