"""Asking every group alone for the keywords of what it says, as keyword aggregation and consensus do."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from robustrag_integrations.defenses.agreement.reader import KeywordReader
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Early, Quorum, Reading, are_short, ask_groups
from robustrag_integrations.plans.requests import Reply, Request
from robustrag_integrations.prompts import Prompt


class KeywordAsking(Protocol):
    """What a method's settings say of it."""

    @property
    def quorum(self) -> Quorum:
        """How many groups must be asked with success."""
        ...

    @property
    def reader(self) -> KeywordReader:
        """A response to its keywords."""
        ...

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        ...


@dataclass(frozen=True)
class KeywordReadings:
    """What the groups said.

    Attributes:
        groups: one reading per group.
        reader: what read them, for this question.
        brief: whether reading short replies takes no time to speak of (`Ask.brief`).
    """

    groups: list[Reading[frozenset[str]]]
    reader: KeywordReader
    brief: bool


def ask_for_keywords(
    query: str,
    groups: Sequence[PassageGroup],
    settings: KeywordAsking,
    early: Early[frozenset[str]] | None = None,
) -> Generator[Request, Reply, KeywordReadings]:
    """Ask every group alone, and read the keywords of what it says.

    Args:
        query: the question.
        groups: the isolated groups.
        settings: the method's.
        early: when to stop before all have answered; None for never.

    Raises:
        QuorumError: too many groups failed.
    """
    prompts, reader = settings.isolated_prompts(query, groups), settings.reader.for_question(query)
    brief = reader.is_brief and are_short(prompts)
    readings = yield from ask_groups(
        groups,
        prompts,
        settings.quorum,
        reader.keywords_of,
        early,
        by_letter=True,
        brief=brief,
        read_ahead=reader.read_ahead,
    )
    return KeywordReadings(readings, reader, brief)
