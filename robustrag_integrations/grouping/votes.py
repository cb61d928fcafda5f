"""Votes: what has one, how many an origin has, and how many are enough for an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from robustrag_integrations._util.checks import check_at_least, is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.settings import check_settings, setting, settings_in
from robustrag_integrations._util.words import count_of
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    first_of_same,
    grouping_of,
    is_named,
    isolate,
    readable_origin,
)
from robustrag_integrations.grouping.trust import OTHER, ByOrigin, TierRule, Tiers

Copies = Literal["report", "one_vote"]
Below = Literal["abstain", "raise"]
Weights = Mapping[str, int] | Callable[[Passage], int]

HASTE = ("stop_when_decided", "wave_size")  # fields that change no text
_CHANGES_NO_ANSWER = (*HASTE, "allow_sole_source", "tiers", "group_by")
MOST_VOTES = 100  # of one origin; more leave nothing to the others
_NAMED = 5  # names in a warning


@dataclass(frozen=True)
class VoteRules:
    """The rules that turn passages into votes and say when there are too few.

    Attributes:
        group_size: omega, how many adjacent passages share a group.
        group_by: the unit that has one vote, as for `isolate`: `"origin"` (default), `"site"`, `"passage"`, the name of
            a metadata entry, or a function from a `Passage` to a key.
        copies: groups with the same content, but for case, width and whitespace. `"report"` names them in a warning;
            with `"one_vote"`, of those that also answer the same, the first counts and the others abstain.
        weights: the votes of an origin, a whole number up to 100. By its name, its folder with a slash at the end, or
            its host or site, as `https://x.com` (a mapping; who is not in it has one vote); or a function of a
            `Passage`, which has no vote where that raises. A passage without a vote is left out and named; a group has
            the fewest votes of its other passages. The radius counts votes then.
        tiers: the trust in an origin, a label for which `radius_by_tier` tells how many groups can be replaced.
            By name as in `weights` (a mapping from names to labels, the most trusted label first), or a function of a
            `Passage`. Whoever has no label is `other`. A group is the least trusted of its passages: the label that
            comes last in a mapping; of a function's labels, `other`. Labels change no answer.
        min_groups: with fewer groups there is no answer.
        min_radius: nor with a smaller radius; with `tiers`, a mapping from labels to numbers of groups that must be
            replaceable together (`RobustAnswer.holds`). Nothing is streamed before the radius is known.
        below: in place of such an answer `"abstain"`, with a warning that says why, or `"raise"` TooFewVotesError.
        stop_when_decided: groups that have not answered are not waited for once nothing they could say changes the
            answer, nor takes its radius below `min_radius`. The text stays the same; the radius is what is proved then.
        wave_size: with it, how many groups are asked at once, and the next ones only if that did not decide; None: all.
        allow_sole_source: an answer that rests on one source alone goes into other prompts, too: an agent's, a tool's,
            a chat history (`RobustAnswer.for_prompt`). False: it is an abstention there, as it may be an attacker's
            words.

    Raises:
        ValueError, TypeError: an invalid field; the message names it and the fix.
        ImportError: `group_by="site"` without tldextract.
    """

    group_size: int = setting(1, "number of passages per group", least=1)
    group_by: GroupBy | None = setting(
        None, "what has one vote: origin (a file or page), site, passage, or an entry of the metadata"
    )
    copies: Copies = setting("report", "sources with the same text: report them, or count those that answer alike once")
    weights: Weights | None = setting(
        None,
        "votes of a source, folder, host or site in place of one, 0 to leave it out: handbook.pdf=3 https://x.com=0; "
        "the radius then counts votes",
    )
    tiers: Tiers | None = setting(
        None,
        "how far a source, folder, host or site is trusted, the most trusted first: wiki/=internal; others are other. "
        "The answer tells how many sources of each can be replaced",
    )
    min_groups: int = setting(0, "abstain with fewer groups", least=0)
    min_radius: int | Mapping[str, int] = setting(
        0, "abstain below this radius; with tiers also by label: other=9 internal=0"
    )
    below: Below = setting("abstain", "in place of an answer that is worth too little: abstain, or raise")
    stop_when_decided: bool = setting(
        False, "consensus, voting: ask no longer than the answer, and its min_radius, can still change"
    )
    wave_size: int | None = setting(
        None, "with stop_when_decided: number of groups asked at once; all if not given", least=1
    )
    allow_sole_source: bool = setting(
        False, "an answer that one source alone gives goes into other prompts, an agent's or a tool's, too"
    )

    def __post_init__(self) -> None:
        check_settings(self)
        _ = self.by, self._named_weights, self._tier_rule  # checks them
        if self.weights is not None and self.copies == "one_vote":
            raise ValueError(
                "weights and copies='one_vote' exclude each other: a copy with another weight would take the place "
                "of one that an attacker replaces; give copies the weight 0 instead"
            )
        if not isinstance(self.min_radius, Mapping):
            check_at_least(0, min_radius=self.min_radius)
            return
        if self.stop_when_decided:
            raise ValueError("min_radius by tier needs what all groups say; leave stop_when_decided out")
        for tier, count in self.min_radius.items():
            if not is_whole_number(count, 0):
                raise ValueError(f"min_radius: {count!r:.60} for {tier!r:.60} must be a whole number of groups")
            if isinstance(self.tiers, Mapping) and tier not in self.tiers_of(()):
                known = ", ".join(map(repr, self.tiers_of(())))
                raise ValueError(f"min_radius: no tier is called {tier!r:.60}; they are {known}")

    @cached_property
    def by(self) -> GroupBy:
        """`group_by`, or what it is by default."""
        return grouping_of(self.group_size, self.group_by)

    @cached_property
    def _named_weights(self) -> ByOrigin[int] | None:
        if isinstance(self.weights, Mapping):
            for key, votes in self.weights.items():
                _checked(votes, key)
            return ByOrigin("weights", self.weights, self.by)
        if self.weights is not None and not callable(self.weights):
            raise TypeError(
                f"weights must be a mapping from origins to votes, or a function of a Passage, got {self.weights!r:.60}"
            )
        return None

    @cached_property
    def _tier_rule(self) -> TierRule | None:
        return None if self.tiers is None else TierRule(self.tiers, self.by)

    @property
    def given(self) -> dict[str, Any]:
        """The rules that are not at their defaults."""
        return {name: value for name, rule in RULES.items() if (value := getattr(self, name)) != rule.default}

    def check_complete(self) -> None:
        """Check that no rule lacks one that it goes with, which a settings file may have added.

        Raises:
            ValueError: one does; the message names both.
        """
        if self.wave_size is not None and not self.stop_when_decided:
            raise ValueError(f"wave_size={self.wave_size!r} requires stop_when_decided=True")
        if isinstance(self.min_radius, Mapping) and self.tiers is None:
            raise ValueError(f"min_radius={dict(self.min_radius)!r:.80} counts groups by tier; pass tiers=, too")

    def unit_of(self, groups: Sequence[PassageGroup]) -> str:
        """Return the unit of the radius; `passages` where no passage names its origin."""
        if self.weights is not None:
            return "votes"
        by_origin = self.by in (ORIGIN, SITE) and groups
        return "passages" if by_origin and not any(is_named(p) for g in groups for p in g.passages) else "groups"

    def isolate(self, passages: Iterable[str | Passage]) -> tuple[PassageGroup, ...]:
        """Return the passages' groups, before weights and copies."""
        return isolate(passages, self.group_size, by=self.by)

    def counted(self, groups: Sequence[PassageGroup]) -> tuple[tuple[PassageGroup, ...], tuple[str, ...]]:
        """Return the groups with their votes, without those that have none, and the warnings; before copies.

        Raises:
            ValueError: a weight is not a whole number from 0 to 100.
        """
        failed: Counter[str] = Counter()
        dropped: list[Passage] = []
        kept = list(groups)
        if self.weights is not None:
            kept = list(filter(None, (self._weighed(group, failed, dropped) for group in groups)))
            kept = [replace(group, index=index) for index, group in enumerate(kept)]
        if self._tier_rule is not None:
            kept = [replace(group, tier=self._tier_rule.of_group(group)) for group in kept]
        notes = []
        if read := [name for name in ("weights", "tiers") if callable(getattr(self, name))]:
            notes.append(
                f"{' and '.join(read)} are read from a function of the passages and taken as given: the radius does "
                "not cover an attacker who can write what it reads"
            )
        if kept and all(group.tier == OTHER for group in kept):
            notes.append(f"tiers name none of the sources here, so that all are {OTHER!r}{_HOST_HINT}")
        if dropped:
            why = ", ".join(f"{count} {reason}" for reason, count in failed.most_common(5))
            names = (origin.given if (origin := readable_origin(p)) else p.id or "?" for p in dropped[:_NAMED])
            named = printable("; ".join(dict.fromkeys(names)), 200) + ("; ..." if len(dropped) > _NAMED else "")
            which = f"by weights={f', which fails ({why})' if failed else ''}, not asked: {named}"
            notes.append(f"{count_of(len(dropped), 'passage')} without a vote, {which}")
        weights = self._named_weights
        if weights is not None and groups and len(weights.unused(groups)) == len(weights.given):
            meant = printable("; ".join(map(str, [*weights.given][:_NAMED])), 200)
            here = printable("; ".join("no name" if g.key is None else str(g.key) for g in groups[:_NAMED]), 200)
            notes.append(
                f"weights name none of the sources here, so that each has one vote{_HOST_HINT}: {meant}. Here: {here}"
            )
        return tuple(kept), tuple(notes)

    def tiers_of(self, seen: Iterable[str]) -> tuple[str, ...]:
        """Return all tiers, the most trusted first, given those of the groups."""
        return () if self._tier_rule is None else self._tier_rule.ordered(seen)

    def with_copies(self, groups: tuple[PassageGroup, ...]) -> tuple[PassageGroup, ...]:
        """Link each copy to the first group with its content; takes a second for five million characters."""
        if self.copies != "one_vote":
            return groups
        firsts = first_of_same([g.content for g in groups])
        return tuple(
            g if first == g.index else replace(g, copy_of=first) for g, first in zip(groups, firsts, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields that differ from the defaults, JSON-safe, as answers name them."""
        found = {name: v for name, v in self.given.items() if name not in ("group_size", "group_by", "below")}
        if self.by != ORIGIN:
            found["group_by"] = self.by
        return {name: _json_safe(value) for name, value in found.items()}

    def check_certifiable(self) -> None:
        """Check that certificates can be made for votes like these.

        Raises:
            ValueError: they are not; the message names what to leave out.
        """
        if further := {name: value for name, value in self.as_dict().items() if name not in _CHANGES_NO_ANSWER}:
            raise ValueError(
                f"{', '.join(f'{name}={value!r}' for name, value in further.items())}: certificates are about one vote "
                "per group, and do not count the abstentions that an attacker may cause; certify the defence without "
                f"{' and '.join(further)}"
            )

    def _weighed(self, group: PassageGroup, failed: Counter[str], dropped: list[Passage]) -> PassageGroup | None:
        """Return a group with its votes and without passages that have none; None if all have none.

        Args:
            group: as it was isolated.
            failed: counts the errors of a function of the user's.
            dropped: takes the passages without a vote.
        """
        votes = [self._votes(passage, group.key, failed) for passage in group.passages]
        kept = [place for place, each in enumerate(votes) if each]
        dropped += [passage for passage, each in zip(group.passages, votes, strict=True) if not each]
        if not kept:
            return None
        if len(kept) == len(votes):
            return replace(group, weight=min(votes))
        return replace(
            group,
            weight=min(votes[place] for place in kept),
            passages=tuple(group.passages[place] for place in kept),
            ranks=tuple(group.ranks[place] for place in kept),
            keyless=group.keyless[: len(kept)],
        )

    def _votes(self, passage: Passage, key: Hashable, failed: Counter[str]) -> int:
        if self._named_weights is not None:
            return min(1 if votes is None else votes for votes in self._named_weights.of_passage(passage, key))
        try:
            votes = self.weights(passage)  # type: ignore[operator, misc]
        except INTERRUPTS:
            raise
        except BaseException as error:  # hostile metadata costs its own passage its vote
            failed[type(error).__name__] += 1
            return 0
        return _checked(votes, key)


_HOST_HINT = " (a host is named with its scheme, as https://x.com)"


def _json_safe(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    return "function" if callable(value) else value


RULES = {rule.name: rule for rule in settings_in(VoteRules)}
"""The declarations of the rules, by name."""
VOTES = tuple(RULES)
"""The names of the rules."""


def _checked(votes: object, key: object) -> int:
    if not is_whole_number(votes, 0, MOST_VOTES):
        raise ValueError(
            f"weights: {votes!r} for {printable(str(key), 60)!r} must be a whole number of votes from 0 to {MOST_VOTES}"
        )
    return votes
