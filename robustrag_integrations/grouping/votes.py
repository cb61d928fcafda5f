"""Votes: what has one, how many an origin has and how far it is trusted, and how many are enough for an answer.

A mapping names origins, their folders, or their hosts and sites; the most precise name counts. Names of web pages,
their folders and hosts begin with `http:` or `https:`, in the mapping and in metadata; any other name meets that name
alone, since anybody can make a folder that is called like a host. A group has the fewest votes of its passages, and the
tier of the least trusted of them; a passage whose metadata names several origins is trusted no more than a stranger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from robustrag_integrations._util.checks import check_at_least, is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import INTERRUPTS
from robustrag_integrations._util.settings import check_settings, setting, settings_in
from robustrag_integrations._util.words import count_of
from robustrag_integrations.grouping.origins import ADDRESS, Origin, label, origin_named, site_of
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    first_of_same,
    grouped,
    grouping_of,
    is_named,
)

OTHER = "other"  # the tier of whatever has no other one
_LONGEST_LABEL = 60
T = TypeVar("T")

Tiers = Mapping[str, str] | Callable[[Passage], str | None]
Copies = Literal["report", "one_vote"]
Below = Literal["abstain", "raise"]
Weights = Mapping[str, int] | Callable[[Passage], int]
_Name = tuple[str, Hashable]  # a kind of name, and the name

HASTE = ("stop_when_decided", "wave_size")  # fields that change no text
_CHANGES_NO_ANSWER = (*HASTE, "allow_sole_source", "tiers", "group_by")
MOST_VOTES = 100  # of one origin; more leave nothing to the others
_NAMED = 5  # names in a warning


class ByOrigin(Generic[T]):
    """Values by origin, folder, host or site, given by names as users write them; `what` is the setting."""

    def __init__(self, what: str, given: Mapping[Any, T], by: GroupBy) -> None:
        self.given = dict(given)
        self._by = by
        self._names: dict[_Name, Any] = {}  # in the form that is compared, to the key of `given`
        for key, value in given.items():
            for name in _names_meant(key, by):
                if given[other := self._names.setdefault(name, key)] != value:
                    raise ValueError(
                        f"{what}: {printable(str(key), 60)!r} is {value!r}, another spelling of it {given[other]!r}; "
                        "name it once"
                    )

    def of_passage(self, passage: Passage, key: Hashable) -> list[T | None]:
        """Return the values of a passage of a group with this key, the least of which counts."""
        found: list[T | None] = []
        for names in self._of(passage, key):
            entry = next((self._names[name] for name in names if name in self._names), None)
            found.append(None if entry is None else self.given[entry])
        return found if len(found) == 1 else [None, *found]

    def unused(self, groups: Sequence[PassageGroup]) -> list[str]:
        """Return the names that none of these groups is of."""
        every = (names for group in groups for passage in group.passages for names in self._of(passage, group.key))
        there = {self._names.get(name) for names in every for name in names}
        return [str(key) for key in self.given if key not in there]

    def _of(self, passage: Passage, key: Hashable) -> list[list[_Name]]:
        """Return the names, the most precise first, of each origin that a passage names."""
        if self._by not in (ORIGIN, SITE, PASSAGE):
            return [[("name", key)]]
        origin = passage.origin
        named: list[Origin | None] = [other for _, other in passage.contradicted] if origin else []
        return [list(_names_of(each, self._by)) for each in named or [origin]]


def _names_meant(key: Any, by: GroupBy) -> Iterator[_Name]:
    """Yield what a name that a user writes stands for: an origin, with a slash at its end a folder, or a host."""
    origin = origin_named(key) if isinstance(key, str) and not callable(by) else None
    if origin is None or by not in (ORIGIN, SITE, PASSAGE):
        yield "name", key if origin is None else origin.name
        return
    kind = _kind_of(origin)
    yield kind, origin.name
    if key.strip().endswith("/"):
        yield f"folder of {kind}", origin.name.rstrip("/")
    if origin.kind == ADDRESS and origin.host:
        if origin.name == origin.host:
            yield "host", origin.host
        if by == SITE:
            yield "host", site_of(origin)


def _names_of(origin: Origin | None, by: GroupBy) -> Iterator[_Name]:
    if origin is None:
        return
    kind = _kind_of(origin)
    yield kind, origin.name
    folder = origin.page.rstrip("/")
    while folder:
        yield f"folder of {kind}", folder
        folder = folder.rpartition("/")[0]
    if origin.kind != ADDRESS or not origin.host:
        return
    host = origin.host
    yield "host", host
    while not host.startswith("[") and "." in (host := host.partition(".")[2]):  # a host above another one has a dot
        yield "host", host
    if by == SITE:
        yield "host", site_of(origin)


def _kind_of(origin: Origin) -> str:
    return "page" if origin.kind == ADDRESS else "name"


class TierRule:
    """The rule that gives groups their tiers: by name, or by a function of a passage (`by_origin` is None).

    `labels` are the tiers that are known beforehand, the most trusted first.
    """

    def __init__(self, given: Any, by: GroupBy) -> None:
        self.by_origin: ByOrigin[str] | None = None
        self.labels: tuple[str, ...] = (OTHER,)
        self._given = given
        if isinstance(given, Mapping):
            for key, tier in given.items():
                if not isinstance(tier, str) or not 0 < len(tier.strip()) <= _LONGEST_LABEL:
                    raise ValueError(
                        f"tiers: {tier!r:.80} for {printable(str(key), 60)!r} must be a label such as 'internal', of "
                        f"at most {_LONGEST_LABEL} characters"
                    )
            self.by_origin = ByOrigin("tiers", given, by)
            self.labels = (*dict.fromkeys(tier for tier in given.values() if tier != OTHER), OTHER)
        elif not callable(given):
            raise TypeError(
                f"tiers must be a mapping from origins to labels, or a function of a Passage, got {given!r:.60}"
            )

    def of_group(self, group: PassageGroup) -> str:
        """Return the tier of a group's least trusted passage; `other` where it is not known which of two that is."""
        if self.by_origin is None:
            found = {self._label(passage) for passage in group.passages}
            return found.pop() if len(found) == 1 else OTHER
        tiers = (tier for p in group.passages for tier in self.by_origin.of_passage(p, group.key))
        return max((tier or OTHER for tier in tiers), key=self.labels.index, default=OTHER)

    def ordered(self, seen: Iterable[str]) -> tuple[str, ...]:
        """Return all tiers, those of these groups among them, with `other` last."""
        return (*(self.labels[:-1] or sorted({*seen} - {OTHER})), OTHER)

    def _label(self, passage: Passage) -> str:
        try:
            tier = label(self._given(passage))
        except INTERRUPTS:
            raise
        except BaseException:  # hostile metadata
            return OTHER
        return tier if tier is not None and tier.strip() and len(tier) <= _LONGEST_LABEL else OTHER


@dataclass(frozen=True)
class VoteRules:
    """The rules that turn passages into votes and say when there are too few. None stands for the default.

    A passage without a vote is left out and named; a group has the fewest votes of its other passages, and the least
    trusted tier. Weights and tiers are mappings of names or functions of a `Passage`; where a function of weights
    raises, that passage has no vote. Labels of tiers change no answer. With `copies="one_vote"`, of groups with the
    same content that also answer the same, the first counts and the others abstain. With `min_radius` nothing is
    streamed before the radius is known. With `stop_when_decided` the text stays the same; the radius is what is proved
    by then. `below="raise"` raises TooFewVotesError in place of an abstention.
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
    min_groups: int = setting(0, "abstain with fewer sources", least=0)
    min_radius: int | Mapping[str, int] = setting(
        0, "abstain below this radius; with tiers also by label: other=9 internal=0"
    )
    below: Below = setting("abstain", "in place of an answer that is worth too little: abstain, or raise")
    stop_when_decided: bool = setting(
        False, "consensus, voting: ask no longer than the answer, and its min_radius, can still change"
    )
    wave_size: int | None = setting(
        None, "with stop_when_decided: number of sources asked at once; all if not given", least=1
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
            raise ValueError("min_radius by tier needs what all sources say; leave stop_when_decided out")
        for tier, count in self.min_radius.items():
            if not is_whole_number(count, 0):
                raise ValueError(f"min_radius: {count!r:.60} for {tier!r:.60} must be a whole number of sources")
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
        """Check that no rule lacks one that it goes with, which a settings file may have added."""
        if self.wave_size is not None and not self.stop_when_decided:
            raise ValueError(f"wave_size={self.wave_size!r} requires stop_when_decided=True")
        if isinstance(self.min_radius, Mapping) and self.tiers is None:
            raise ValueError(f"min_radius={dict(self.min_radius)!r:.80} counts sources by tier; pass tiers=, too")

    def unit_of(self, groups: Sequence[PassageGroup]) -> str:
        """Return the unit of the radius; `passages` where no passage names its origin."""
        if self.weights is not None:
            return "votes"
        by_origin = self.by in (ORIGIN, SITE) and groups
        return "passages" if by_origin and not any(is_named(p) for g in groups for p in g.passages) else "groups"

    def isolate(self, passages: Iterable[str | Passage]) -> tuple[PassageGroup, ...]:
        """Return the passages' groups, before weights and copies."""
        return grouped(passages, self.group_size, self.by)

    def counted(self, groups: Sequence[PassageGroup]) -> tuple[tuple[PassageGroup, ...], tuple[str, ...]]:
        """Return the groups with their votes, without those that have none, and the warnings; before copies."""
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
            names = (origin.given if (origin := p.origin) else p.id or "?" for p in dropped[:_NAMED])
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

    @cached_property
    def named(self) -> dict[str, Any]:
        """The fields that differ from the defaults, JSON-safe, as answers name them."""
        found = {name: v for name, v in self.given.items() if name not in ("group_size", "group_by", "below")}
        if self.by != ORIGIN:
            found["group_by"] = self.by
        return {name: _json_safe(value) for name, value in found.items()}

    def check_certifiable(self) -> None:
        """Raise ValueError if certificates cannot be made for votes like these."""
        if further := {name: value for name, value in self.named.items() if name not in _CHANGES_NO_ANSWER}:
            raise ValueError(
                f"{', '.join(f'{name}={value!r}' for name, value in further.items())}: certificates are about one vote "
                "per source, and do not count the abstentions that an attacker may cause; certify the defence without "
                f"{' and '.join(further)}"
            )

    def _weighed(self, group: PassageGroup, failed: Counter[str], dropped: list[Passage]) -> PassageGroup | None:
        """Return a group with its votes and without passages that have none, which `dropped` takes; None if all have
        none. `failed` counts the errors of a function of the user's."""
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
