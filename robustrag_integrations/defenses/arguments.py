"""What a user gives a defence, taken apart: the rules of votes, and all other arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.grouping.votes import RULES, VoteRules


@dataclass(frozen=True)
class Arguments:
    """The rules of votes among the arguments of a defence, and the other ones; None: not given."""

    rules: VoteRules
    options: dict[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any], votes: VoteRules | None = None) -> Arguments:
        """Take the rules out of what is given."""
        given = {name: value for name, value in given.items() if value is not None}
        if votes is not None and not isinstance(votes, VoteRules):
            raise TypeError(f"votes must be VoteRules(...), got {type(votes).__name__}")
        for name, rule in {} if votes is None else votes.given.items():
            if given.setdefault(name, rule) != rule:
                raise ValueError(f"{name}={given[name]!r:.60} and votes.{name}={rule!r:.60}: give one of them")
        rules = VoteRules(**{name: given.pop(name) for name in RULES if name in given})
        return cls(rules, given)
