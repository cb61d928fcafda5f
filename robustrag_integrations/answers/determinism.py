"""The promise of a radius when the model may draw at random (proof: docs/internals/proofs.md).

Three parties know a part of it each: the model whether it repeats itself (`Repeats`), the method what its radius fixes
when it does not (`Promise`), and both together make what the answer carries (`Determinism`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

State = Literal["deterministic", "samples", "unknown"]
Scope = Literal["every_run", "this_run", "final_prompt", "nothing"]

PREMISES = (
    "one group's draws do not depend on another group's content: no shared stream of random numbers, no batch whose "
    "company moves the numbers, no cache that groups or tenants share",
    "a group's prompt holds its own passages alone, and no reply about another group",
    "no group fails or is asked again because of another one's load: time-outs, rate limits and retries under load "
    "that an attacker causes are a dependence",
    "the answer was not chosen among several runs by its radius",
)
"""The premises of a promise about a run that was drawn; without one of them, nothing is promised."""


@dataclass(frozen=True)
class Repeats:
    """A model's determinism: whether it gives the same reply to the same prompt again, and how that is known.

    Attributes:
        model: `deterministic`; `samples`, if replies to equal prompts differ, be it that they are drawn at random or
            that the numbers move from call to call; or `unknown`.
        why: the evidence for it, in a few words. Of an `unknown` one, the reason to doubt it; empty where there is none
            but that it was not declared.
        probe: the findings of a repeat probe of this model (`robustrag probe`); None without one.
    """

    model: State = "unknown"
    why: str = ""
    probe: Mapping[str, Any] | None = None

    def after(self, probe: Mapping[str, Any] | None) -> Repeats:
        """Add the findings of a repeat probe: differences settle it; that none was seen proves nothing."""
        if probe is None:
            return self
        said = _seen_by(probe)
        why = f"{self.why}; {said}" if self.why else said
        return replace(self, model="samples" if probe["differed"] else self.model, why=why, probe=probe)

    def with_other(self, other: Repeats) -> Repeats:
        """Return the worse of two models that make one answer together."""
        worse = max(self.model, other.model, key=("deterministic", "unknown", "samples").index)
        why = [r.why for r in (self, other) if r.model == worse and r.why]
        return Repeats(worse, "; ".join(dict.fromkeys(why)), self.probe or other.probe)

    @property
    def in_doubt(self) -> bool:
        """True if answers warn: the model samples, or there is a reason to think that it might.

        A probe that saw no difference is no such reason.
        """
        seen = "" if self.probe is None else _seen_by(self.probe)
        return self.model == "samples" or (self.model == "unknown" and self.why not in ("", seen))

    @property
    def caveat(self) -> str:
        """The doubt, in words; empty if there is none."""
        if not self.in_doubt:
            return ""
        if self.model == "samples":
            return f"the model samples{f' ({self.why})' if self.why else ''}: another run may give another answer"
        return f"it is not known whether the model repeats itself ({self.why}): another run may give another answer"


def _seen_by(probe: Mapping[str, Any]) -> str:
    return f"a probe compared {probe['compared']} replies to equal prompts: {probe['differed'] or 'none'} differed"


@dataclass(frozen=True)
class Promise:
    """A method's promise: what no replacement of `radius` groups changes in a run whose groups drew at random.

    Attributes:
        fixed: the part that stays as it is, to follow "no replacement of any 2 of 10 groups changes".
        remark: a further clause; empty for none.
        given: with what held fixed.
        scope: `this_run` if the answer itself stays, `final_prompt` if only what the last call is asked does.
    """

    fixed: str
    remark: str = ""
    scope: Literal["this_run", "final_prompt"] = "this_run"
    given: str = "given what the other groups drew"


@dataclass(frozen=True)
class Determinism:
    """The reach of one answer's radius, given what is known of its model.

    Attributes:
        model: the model's reproducibility: `deterministic`, `samples`, or `unknown`.
        why: the evidence for it.
        scope: the reach of the radius: `every_run`; `this_run`, given what the other groups drew; `final_prompt`, what
            the last call of this run is asked, which draws on its own; or `nothing`, where nothing is promised.
        promise: the promise in words, for this answer.
        premises: its premises; empty where it is about every run, or where nothing is promised.
        acknowledged: True if the user accepted that the model may sample, so that no warning repeats it.
        probe: the findings of a repeat probe of this model; None without one.
    """

    model: State = "unknown"
    why: str = "not declared whether the model samples"
    scope: Scope = "nothing"
    promise: str = "nothing is promised"
    premises: tuple[str, ...] = ()
    acknowledged: bool = False
    probe: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        repeats: Repeats,
        promise: Promise | None,
        *,
        radius: int,
        whole: int,
        unit: str = "groups",
        acknowledged: bool = False,
        min_radius: int | Mapping[str, int] = 0,
    ) -> Determinism:
        """Combine what is known of a model with what a method promises.

        Args:
            repeats: the model's reproducibility, as far as it is known.
            promise: the method's; None promises nothing of a run that was drawn.
            radius: the answer's.
            whole: of how many.
            unit: of the radius: `groups`, `passages` or `votes`.
            acknowledged: True if the user accepted sampling.
            min_radius: below which an answer becomes an abstention.
        """
        counted = "passages" if unit == "passages" else "groups"
        whichever = f"no replacement of any {'one' if radius == 1 else radius} of {whole} {counted}"
        if unit == "votes":
            whichever = f"no replacement of groups with up to {radius} of {whole} votes"
        scope: Scope = "nothing"
        if radius <= 0:
            words = "nothing is promised: the radius is 0"
        elif repeats.model == "deterministic":
            scope, words = "every_run", f"{whichever} changes the answer, in this run or another"
        elif promise is None:
            words = "nothing is promised: the method does not say what its radius means when a model samples"
        else:
            remark = f"; {promise.remark}" if promise.remark else ""
            scope, words = promise.scope, f"{whichever} changes {promise.fixed}, {promise.given}{remark}"
        if min_radius and scope != "nothing":
            words += f"; an abstention may take its place (min_radius={min_radius})"
        return cls(
            repeats.model,
            repeats.why or cls.why,
            scope,
            words,
            PREMISES if scope in ("this_run", "final_prompt") else (),
            acknowledged,
            repeats.probe,
        )


UNKNOWN = Determinism()
"""The record of an answer about which nothing is known."""
