"""Votes: what has one, how many an origin has, and how many are enough for an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from robustrag_integrations._util.checks import check_at_least, is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.settings import check_settings, setting, settings_in
from robustrag_integrations._util.words import count_of
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.copies import first_of_same
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    grouping_of,
    is_named,
    isolate,
    readable_origin,
)
from robustrag_integrations.grouping.trust import OTHER, ByOrigin, Newest, TierRule, Tiers

Copies = Literal["report", "one_vote"]
Below = Literal["abstain", "raise"]
Weights = Mapping[str, int] | str | Callable[[Passage], int]

HASTE = ("stop_when_decided", "wave_size")  # fields that change no text
_CHANGES_NO_ANSWER = (*HASTE, "allow_sole_source", "tiers")
_LIMITS = ("min_groups", "min_radius")
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
            its host or site, as `https://x.com` (a mapping; who is not in it has one vote); `"newest"` or
            `"newest:KEY"` for votes by date (`Newest`); or a function of a `Passage`, which has no vote where that
            raises. Metadata entries and keys are named as `group_by` says. A passage without a vote is left out and
            named; a group has the fewest votes of its other passages. The radius counts votes then.
        tiers: the trust in an origin, a label for which `radius_by_tier` tells how many groups can be replaced.
            By name as in `weights` (a mapping from names to labels, the most trusted label first), the name of a
            metadata entry, `"newest"` or `"newest:KEY"` (tiers `recent` and `older`), or a function of a `Passage`.
            Whoever has no label is `other`. A group is the least trusted of its passages: the label that comes last in
            a mapping; where no order is known, `other`. Labels change no answer.
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
        "or newest:ENTRY for votes by the date in an entry of the metadata; the radius then counts votes",
    )
    tiers: Tiers | None = setting(
        None,
        "how far a source, folder, host or site is trusted, the most trusted first: wiki/=internal; others are other; "
        "or an entry of the metadata. The answer tells how many sources of each can be replaced",
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
    by: GroupBy = field(init=False, default="origin")
    _named: ByOrigin[int] | None = field(init=False, default=None, repr=False, compare=False)
    _tiers: TierRule | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "by", grouping_of(self.group_size, self.group_by))
        if self.weights is not None and self.copies == "one_vote":
            raise ValueError(
                "weights and copies='one_vote' exclude each other: a copy with another weight would take the place "
                "of one that an attacker replaces; give copies the weight 0 instead"
            )
        if isinstance(self.weights, Mapping):
            for key, votes in self.weights.items():
                _checked(votes, key)
            object.__setattr__(self, "_named", ByOrigin.of("weights", self.weights, self.by))
        elif isinstance(self.weights, str):
            if (newest := Newest.named(self.weights)) is None:
                raise ValueError(f"weights={self.weights!r:.60}: use 'newest', 'newest:KEY', a mapping or a function")
            object.__setattr__(self, "weights", newest)
        elif self.weights is not None and not callable(self.weights):
            raise TypeError(
                f"weights must be a mapping from origins to votes, or a function of a Passage, got "
                f"{type(self.weights).__name__}"
            )
        if self.tiers is not None:
            object.__setattr__(self, "_tiers", TierRule.of(self.tiers, self.by))
        self._check_min_radius()

    def _check_min_radius(self) -> None:
        if not isinstance(self.min_radius, Mapping):
            check_at_least(0, min_radius=self.min_radius)
            return
        if self.stop_when_decided:
            raise ValueError("min_radius by tier needs what all groups say; leave stop_when_decided out")
        for tier, count in self.min_radius.items():
            if not is_whole_number(count, 0):
                raise ValueError(f"min_radius: {count!r:.60} for {tier!r:.60} must be a whole number of groups")
            if self._tiers is not None and self._tiers.is_closed and tier not in self._tiers.labels:
                known = ", ".join(map(repr, self._tiers.labels))
                raise ValueError(f"min_radius: no tier is called {tier!r:.60}; they are {known}")

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
        weighed = list(groups) if self.weights is None else [self._weighed(g, failed, dropped) for g in groups]
        kept = [g if g.index == index else replace(g, index=index) for index, g in enumerate(filter(None, weighed))]
        if (tiers := self._tiers) is not None:
            kept = [replace(g, tier=tiers.of_group(g)) for g in kept]
        dates = self._newest or Newest()
        kept = [g if (day := dates.day_of(g)) is None else replace(g, dated=day.isoformat()) for g in kept]
        notes = [] if self._given is None else [self._given]
        if self._newest is not None and kept and all(g.dated is None for g in kept):
            notes.append("no passage here has a date that can be read, so that none is newer than others")
        elif tiers is not None and kept and all(g.tier == OTHER for g in kept):
            notes.append(f"tiers name none of the sources here, so that all are {OTHER!r}")
        if failed:
            causes = ", ".join(f"{count} {reason}" for reason, count in failed.most_common(5))
            notes.append(f"weights= fails over {count_of(failed.total(), 'passage')}, which have no vote: {causes}")
        if dropped:
            names = (origin.given if (origin := readable_origin(p)) else p.id or "?" for p in dropped[:_NAMED])
            named = printable("; ".join(dict.fromkeys(names)), 200) + ("; ..." if len(dropped) > _NAMED else "")
            notes.append(f"{count_of(len(dropped), 'passage')} without a vote, by weights=, not asked: {named}")
        if self._named is not None and groups and len(self._named.unused(groups)) == len(self._named.given):
            meant = printable("; ".join(map(str, [*self._named.given][:_NAMED])), 200)
            here = printable("; ".join("no name" if g.key is None else str(g.key) for g in groups[:_NAMED]), 200)
            notes.append(f"weights name none of the sources here, so that each has one vote: {meant}. Here: {here}")
        for option, rule in self._by_origin.items():
            notes += [
                f"{option}: {printable(name, 60)!r} meets that name alone, and no source here has it; the host is "
                f"'https://{printable(name, 60)}'"
                for name in rule.hosts_meant(groups)[:_NAMED]
            ]
        return tuple(kept), tuple(notes)

    @property
    def _newest(self) -> Newest | None:
        """The rule by which passages are dated, if any."""
        rules = (self.weights, None if self._tiers is None else self._tiers.given)
        return next((rule for rule in rules if isinstance(rule, Newest)), None)

    @property
    def _given(self) -> str | None:
        """The warning that votes or tiers are what passages' metadata says."""
        rules = {"weights": self.weights, "tiers": None if self._tiers is None else self._tiers.given}
        read = {name: rule for name, rule in rules.items() if not isinstance(rule, (Mapping, ByOrigin, type(None)))}
        if not read:
            return None
        entries = {rule.key if isinstance(rule, Newest) else rule for rule in read.values()}
        named = ", ".join(sorted(printable(repr(entry), 60) for entry in entries if isinstance(entry, str)))
        what = f"the metadata ({named})" if named else "a function of the passages"
        return (
            f"{' and '.join(read)} are read from {what} and taken as given: the radius does not cover an attacker who "
            "can write them"
        )

    def tiers_of(self, seen: Iterable[str]) -> tuple[str, ...]:
        """Return all tiers, the most trusted first, given those of the groups."""
        return () if self._tiers is None else self._tiers.ordered(seen)

    def unmatched(self, groups: Sequence[PassageGroup]) -> dict[str, list[str]]:
        """Return the names in `weights` and in `tiers` that none of these groups is of."""
        return {option: rule.unused(groups) for option, rule in self._by_origin.items()}

    @property
    def _by_origin(self) -> dict[str, ByOrigin[Any]]:
        """The rules that name origins, by option."""
        rules = {"weights": self._named, "tiers": None if self._tiers is None else self._tiers.given}
        return {option: rule for option, rule in rules.items() if isinstance(rule, ByOrigin)}

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
        found: dict[str, Any] = {}
        if self.by != ORIGIN:
            found["group_by"] = "function" if callable(self.by) else self.by
        if self.copies != "report":
            found["copies"] = self.copies
        if self.weights is not None:
            found["weights"] = _as_setting(self.weights)
        if self._tiers is not None:
            found["tiers"] = self._tiers.as_setting()
        further = {n: v for n in (*_LIMITS, *HASTE, "allow_sole_source") if (v := getattr(self, n))}
        return found | {n: dict(v) if isinstance(v, Mapping) else v for n, v in further.items()}

    def check_certifiable(self) -> None:
        """Check that certificates can be made for votes like these.

        Raises:
            ValueError: they are not; the message names what to leave out.
        """
        counted = (*_CHANGES_NO_ANSWER, "group_by")
        if further := {name: value for name, value in self.as_dict().items() if name not in counted}:
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
        weighed = replace(group, weight=min(votes[place] for place in kept))
        if len(kept) == len(votes):
            return weighed
        of_kept: dict[str, Any] = {
            name: tuple(each[place] for place in kept if place < len(each))
            for name in ("passages", "ranks", "keyless")
            for each in [getattr(group, name)]
        }
        return replace(weighed, **of_kept)

    def _votes(self, passage: Passage, key: Hashable, failed: Counter[str]) -> int:
        if self._named is None:
            return _checked(self._votes_of(passage, failed), key)
        return min(1 if votes is None else votes for votes in self._named.of_passage(passage, key))

    def _votes_of(self, passage: Passage, failed: Counter[str]) -> object:
        assert callable(self.weights)  # noqa: S101 - checked in `__post_init__`
        try:
            return self.weights(passage)
        except INTERRUPTS:
            raise
        except BaseException as error:  # hostile metadata costs its own passage its vote
            failed[type(error).__name__] += 1
            return 0


def _as_setting(weights: Any) -> Any:
    if isinstance(weights, Mapping):
        return {str(key): votes for key, votes in weights.items()}
    return weights.as_dict() if isinstance(weights, Newest) else "function"


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
