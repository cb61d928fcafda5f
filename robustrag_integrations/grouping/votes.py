"""Votes: what has one, how many an origin has, and how many are enough for an answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from robustrag_integrations._util.checks import check_at_least, check_flag, is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.grouping.copies import first_of_same
from robustrag_integrations.grouping.origins import origin_named
from robustrag_integrations.grouping.passages import ORIGIN, SITE, GroupBy, Passage, PassageGroup, grouping_of, isolate
from robustrag_integrations.grouping.sites import site_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class VoteOptions(TypedDict, total=False):
        """The fields of `VoteRules` as keyword arguments, which every defence and both integrations take."""

        group_size: int
        group_by: GroupBy | None
        copies: Copies
        weights: Weights | None
        min_groups: int
        min_radius: int
        below: Below
        stop_when_decided: bool
        wave_size: int | None
        allow_sole_source: bool


Copies = Literal["report", "one_vote"]
Below = Literal["abstain", "raise"]
Weights = Mapping[str, int] | Callable[[Any], int]

HASTE = ("stop_when_decided", "wave_size")  # fields that change no text
_CHANGES_NO_ANSWER = (*HASTE, "allow_sole_source")
_LIMITS = ("min_groups", "min_radius")
MOST_VOTES = 100  # of one origin; more leave nothing to the others


@dataclass(frozen=True)
class VoteRules:
    """The rules that turn passages into votes and say when there are too few.

    Attributes:
        group_size: omega, how many adjacent passages share a group.
        group_by: what has one vote, as for `isolate`: `"origin"` (default), `"site"`, `"passage"`, the name of a
            metadata entry, or a function from a `Passage` to a key.
        copies: groups with the same text, but for case, width and whitespace. `"report"` names them in a warning;
            with `"one_vote"`, of those that also answer the same, the first counts and the others abstain.
        weights: how many votes an origin has, a whole number up to 100; 0 leaves its passages out. By its name (a
            mapping; who is not in it has one vote), or a function of its name, which is None for passages without one.
            Any address names its site; metadata entries and keys are named as `group_by` says. The radius counts
            votes then.
        min_groups: with fewer groups there is no answer.
        min_radius: nor with a smaller radius. Nothing is streamed before the radius is known.
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

    group_size: int = 1
    group_by: GroupBy | None = None
    copies: Copies = "report"
    weights: Weights | None = None
    min_groups: int = 0
    min_radius: int = 0
    below: Below = "abstain"
    stop_when_decided: bool = False
    wave_size: int | None = None
    allow_sole_source: bool = False
    by: GroupBy = field(init=False, default="origin")

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", grouping_of(self.group_size, self.group_by))
        check_at_least(0, min_groups=self.min_groups, min_radius=self.min_radius)
        check_flag(stop_when_decided=self.stop_when_decided, allow_sole_source=self.allow_sole_source)
        if self.wave_size is not None:
            check_at_least(1, wave_size=self.wave_size)
            if not self.stop_when_decided:
                raise ValueError(f"wave_size={self.wave_size!r} requires stop_when_decided=True")
        for name, allowed in (("copies", Copies), ("below", Below)):
            if (given := getattr(self, name)) not in get_args(allowed):
                raise ValueError(f"{name}={given!r}: use {' or '.join(map(repr, get_args(allowed)))}")
        if self.weights is not None and self.copies == "one_vote":
            raise ValueError(
                "weights and copies='one_vote' exclude each other: a copy with another weight would take the place "
                "of one that an attacker replaces; give copies the weight 0 instead"
            )
        if isinstance(self.weights, Mapping):
            object.__setattr__(self, "weights", self._by_name(self.weights))
        elif self.weights is not None and not callable(self.weights):
            raise TypeError(
                f"weights must be a mapping from origins to votes, or a function of an origin, got "
                f"{type(self.weights).__name__}"
            )

    @property
    def unit(self) -> str:
        """The unit of the radius."""
        return "groups" if self.weights is None else "votes"

    def isolate(self, passages: Iterable[str | Passage]) -> tuple[PassageGroup, ...]:
        """Return the passages' groups, before weights and copies."""
        return isolate(passages, self.group_size, by=self.by)

    def counted(self, groups: Sequence[PassageGroup]) -> tuple[tuple[PassageGroup, ...], tuple[str, ...]]:
        """Return the groups with their votes, without those that have none, and the warnings; before copies.

        Raises:
            ValueError: a weight is not a whole number from 0 to 100.
        """
        weighed = [replace(g, weight=self._votes(g.key)) for g in groups] if self.weights is not None else list(groups)
        left = [g for g in weighed if g.weight]
        dropped = [", ".join(g.origins) or f"group {g.index + 1}" for g in weighed if not g.weight]
        kept = tuple([g if g.index == index else replace(g, index=index) for index, g in enumerate(left)])
        notes = []
        if dropped:
            named = printable("; ".join(dropped[:5]), 200)
            notes.append(f"{count_of(len(dropped), 'group')} without a vote, not asked: {named}")
        if isinstance(self.weights, Mapping) and groups and self.weights.keys().isdisjoint(g.key for g in groups):
            meant = printable("; ".join(map(str, [*self.weights][:5])), 200)
            here = printable("; ".join("no name" if g.key is None else str(g.key) for g in groups[:5]), 200)
            notes.append(f"weights name none of the sources here, so that each has one vote: {meant}. Here: {here}")
        return kept, tuple(notes)

    def with_copies(self, groups: tuple[PassageGroup, ...]) -> tuple[PassageGroup, ...]:
        """Link each copy to the first group with its text; takes a second for five million characters."""
        if self.copies != "one_vote":
            return groups
        firsts = first_of_same([g.text for g in groups])
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
            found["weights"] = dict(self.weights) if isinstance(self.weights, Mapping) else "function"
        return found | {n: v for n in (*_LIMITS, *_CHANGES_NO_ANSWER) if (v := getattr(self, n))}

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

    def _votes(self, key: Hashable) -> int:
        if isinstance(self.weights, Mapping):
            return self.weights.get(key, 1)  # type: ignore[call-overload, no-any-return]
        assert self.weights is not None  # noqa: S101 - the caller looked
        return _checked(self.weights(key), key)

    def _by_name(self, given: Mapping[Any, Any]) -> dict[object, int]:
        """The votes of each origin.

        Raises:
            ValueError: no number of votes, or two spellings of one origin with different ones.
        """
        found: dict[object, int] = {}
        for key, votes in given.items():
            name = self._name(key)
            if found.setdefault(name, _checked(votes, key)) != votes:
                shown = printable(str(key), 60)
                raise ValueError(
                    f"weights: {shown!r} has {votes} votes, another spelling of it has {found[name]}; name it once"
                )
        return found

    def _name(self, key: object) -> object:
        """An origin or site as users write it, in the form that is compared."""
        found = origin_named(key) if isinstance(key, str) and not callable(self.by) else None
        if found is None:
            return key
        return site_of(found) if self.by == SITE else found.name


def _checked(votes: object, key: object) -> int:
    if not is_whole_number(votes, 0, MOST_VOTES):
        raise ValueError(
            f"weights: {votes!r} for {printable(str(key), 60)!r} must be a whole number of votes from 0 to {MOST_VOTES}"
        )
    return votes
