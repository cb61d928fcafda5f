"""Votes: what has one, and how many are enough for an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from robustrag_integrations._util.settings import check_settings, setting, settings_in
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    SITE,
    GroupBy,
    Passage,
    Source,
    grouping_of,
    is_named,
    isolate,
)

Below = Literal["abstain", "raise"]

_CHANGES_NO_ANSWER = ("stop_when_decided", "allow_sole_source", "group_by")


@dataclass(frozen=True)
class VoteRules:
    """The rules that turn passages into votes and say when there are too few. None stands for the default.

    With `min_radius` nothing is streamed before the radius is known. With `stop_when_decided` the text
    stays the same; the radius is what is proved by then. `below="raise"` raises TooFewVotesError in place of an
    abstention.
    """

    passages_per_source: int = setting(1, "number of passages per source", least=1)
    group_by: GroupBy | None = setting(
        None, "what has one vote: origin (a file or page), site, passage, or an entry of the metadata"
    )
    min_sources: int = setting(0, "abstain with fewer sources", least=0)
    min_radius: int = setting(0, "abstain below this radius", least=0)
    below: Below = setting("abstain", "in place of an answer that is worth too little: abstain, or raise")
    stop_when_decided: bool = setting(
        False, "consensus, voting: ask no longer than the answer, and its min_radius, can still change"
    )
    allow_sole_source: bool = setting(
        False, "an answer that one source alone gives goes into other prompts, an agent's or a tool's, too"
    )

    def __post_init__(self) -> None:
        check_settings(self)
        _ = self.by  # checks it

    @cached_property
    def by(self) -> GroupBy:
        """`group_by`, or what it is by default."""
        return grouping_of(self.passages_per_source, self.group_by)

    @property
    def given(self) -> dict[str, Any]:
        """The rules that are not at their defaults."""
        return {name: value for name, rule in RULES.items() if (value := getattr(self, name)) != rule.default}

    def unit_of(self, sources: Sequence[Source]) -> str:
        """Return the unit of the radius; `passages` where no passage names its origin."""
        by_origin = self.by in (ORIGIN, SITE) and sources
        return "passages" if by_origin and not any(is_named(p) for g in sources for p in g.passages) else "sources"

    def isolate(self, passages: Iterable[str | Passage]) -> tuple[Source, ...]:
        """Return the passages' sources."""
        return isolate(passages, self.passages_per_source, by=self.group_by)

    @cached_property
    def named(self) -> dict[str, Any]:
        """The fields that differ from the defaults, JSON-safe, as answers name them."""
        found = {name: v for name, v in self.given.items() if name not in ("passages_per_source", "group_by", "below")}
        if self.by != ORIGIN:
            found["group_by"] = "function" if callable(self.by) else self.by
        return found

    def check_certifiable(self) -> None:
        """Raise ValueError if certificates cannot be made for votes like these."""
        if further := {name: value for name, value in self.named.items() if name not in _CHANGES_NO_ANSWER}:
            raise ValueError(
                f"{', '.join(f'{name}={value!r}' for name, value in further.items())}: certificates are about one vote "
                "per source, and do not count the abstentions that an attacker may cause; certify the defence without "
                f"{' and '.join(further)}"
            )


RULES = {rule.name: rule for rule in settings_in(VoteRules)}
"""The declarations of the rules, by name."""
VOTES = tuple(RULES)
"""The names of the rules."""
