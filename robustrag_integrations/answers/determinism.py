"""The promise of a radius when the model may draw at random (proof and premises: docs/internals/proofs.md).

Three parties know a part of it each: the model whether it repeats itself (`Repeats`), the method what its radius fixes
when it does not (`Promise`), and both together make what the answer carries (`Determinism`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["deterministic", "samples", "unknown"]
Scope = Literal["every_run", "this_run", "final_prompt", "nothing"]


@dataclass(frozen=True)
class Repeats:
    """Whether a model gives the same reply to the same prompt again, and how that is known.

    It `samples` if replies to equal prompts differ, for whatever reason. `why` is the evidence, of an `unknown` one the
    reason to doubt it, if there is one.
    """

    model: State = "unknown"
    why: str = ""

    @classmethod
    def declared(cls, samples: bool) -> Repeats:
        """Return what a user says of a model."""
        return cls("samples" if samples else "deterministic", f"declared by samples={samples}")

    def with_other(self, other: Repeats) -> Repeats:
        """Return the worse of two models that make one answer together."""
        return max(self, other, key=lambda each: ("deterministic", "unknown", "samples").index(each.model))

    @property
    def caveat(self) -> str:
        """What answers warn of: the model samples, or there is a reason to think that it might; else empty."""
        if self.model == "samples":
            named = f" ({self.why})" if self.why else ""
            return f"the model samples{named}: another run may give another answer"
        if self.model == "unknown" and self.why:
            return f"determinism unknown ({self.why}): another run may give another answer"
        return ""


def checked_samples(samples: bool | None) -> bool | None:
    """Return what a user declares of a model; raise TypeError for anything but True, False and None."""
    if samples is not None and not isinstance(samples, bool):
        raise TypeError(f"samples={samples!r:.60} must be True, False, or None where it is not known")
    return samples


@dataclass(frozen=True)
class Promise:
    """What no replacement of `radius` sources changes in a run whose sources drew at random.

    `fixed` follows "replacing any 2 of 10 sources cannot change", `given` says with what held fixed, `remark` is a
    further clause. The scope is `this_run` if the answer itself stays, `final_prompt` if only the last prompt does.
    """

    fixed: str
    remark: str = ""
    scope: Literal["this_run", "final_prompt"] = "this_run"
    given: str = "given the other replies"


@dataclass(frozen=True)
class Determinism:
    """The reach of one answer's radius, given what is known of its model.

    Attributes:
        model: the model's reproducibility: `deterministic`, `samples`, or `unknown`.
        why: the evidence for it.
        scope: the reach of the radius: `every_run`; `this_run`, given what the other sources drew; `final_prompt`, what
            the last call of this run is asked, which draws on its own; or `nothing`, where nothing is promised.
        promise: the promise in words, for this answer.
    """

    model: State = "unknown"
    why: str = "not declared whether the model samples"
    scope: Scope = "nothing"
    promise: str = "nothing is promised"

    @classmethod
    def of(
        cls,
        repeats: Repeats,
        promise: Promise | None,
        *,
        radius: int,
        whole: int,
        unit: str = "sources",
        min_radius: int = 0,
    ) -> Determinism:
        """Combine what is known of a model with what a method promises; None promises nothing of a run that was drawn.

        `radius`, `whole` and `unit` are the answer's.
        """
        counted = "passages" if unit == "passages" else "sources"
        whichever = f"replacing any {'one' if radius == 1 else radius} of {whole} {counted}"
        scope: Scope = "nothing"
        if radius <= 0:
            words = "nothing is promised: the radius is 0"
        elif repeats.model == "deterministic":
            scope, words = "every_run", f"{whichever} cannot change the answer, in this run or another"
        elif promise is None:
            words = "nothing is promised: the method does not say what its radius means when a model samples"
        else:
            remark = f"; {promise.remark}" if promise.remark else ""
            scope, words = promise.scope, f"{whichever} cannot change {promise.fixed}, {promise.given}{remark}"
        if min_radius and scope != "nothing":
            words += f"; an abstention may take its place (min_radius={min_radius})"
        return cls(repeats.model, repeats.why or cls.why, scope, words)

    @classmethod
    def trusted(cls, repeats: Repeats) -> Determinism:
        """Return the promise of an answer that trusted passages decided: no other source is read for it."""
        every = repeats.model == "deterministic"
        words = f"no other source changes the answer{', in this run or another' if every else ' of this run'}"
        return cls(repeats.model, repeats.why or cls.why, "every_run" if every else "this_run", words)


UNKNOWN = Determinism()
"""The record of an answer about which nothing is known."""
