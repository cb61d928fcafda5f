"""The choice of the next token from many sources' distributions, its radius, and what attackers can make of it.

The paper's Algorithm 2, and lines 10-21 of Algorithm 4 with lemmas 1 to 3.

Probabilities are held as whole numbers, in units of 2**-40. Their sums are exact: they do not depend on the order of
the sources, and two runs on the same rows agree to the bit. Inference and radius read the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ONE = 1 << 40  # probability 1
FixedPoint = NDArray[np.int64]


def fixed_point(probabilities: NDArray[np.floating]) -> FixedPoint:
    """Return distributions [n, V] as whole numbers in units of 2**-40, each in [0, ONE].

    A row that is not a distribution (NaN, infinity: a passage may drive a half-precision model there) becomes zeros.
    Zeros are within what one source may do anyway, so the row must not cost the answer.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    sound: NDArray[np.bool_] = np.all((values >= 0) & (values <= 1 + 1e-5), axis=1)
    if not sound.all():
        values = np.where(sound[:, None], values, 0.0)
    scaled = np.minimum(values, 1.0)
    scaled *= ONE
    return np.rint(scaled, out=scaled).astype(np.int64)


def most_probable(distribution: NDArray[np.floating]) -> int:
    """Return the most probable token of a trusted prompt's distribution [V], the lowest id among equals."""
    if not np.isfinite(distribution).all():
        raise ValueError(
            "the model gives no probabilities, not even without passages; its weights hold NaN or infinity"
        )
    return int(distribution.argmax())


@dataclass(frozen=True)
class TokenChoice:
    """The choice of one decoding step.

    Attributes:
        token: the token emitted.
        top: a, the token with the largest sum (the lowest id among equals).
        runner_up: b, the next one.
        gap: A - B, in units of 2**-40.
        indecisive: True if the no-retrieval token was emitted since A - B <= eta.
    """

    token: int
    top: int
    runner_up: int
    gap: int
    indecisive: bool


def choose_token(scores: FixedPoint, no_retrieval_token: int, eta: int) -> TokenChoice:
    """Return the next token (Algorithm 2, lines 8-14), from the [n, V] scores of the sources that did not abstain."""
    total = scores.sum(axis=0)
    top = int(total.argmax())
    best, total[top] = int(total[top]), -1
    runner_up = int(total.argmax())
    gap = best - int(total[runner_up])
    return TokenChoice(no_retrieval_token if gap <= eta else top, top, runner_up, gap, gap <= eta)


def is_decided(choice: TokenChoice, no_retrieval_token: int, eta: int, error: int) -> bool:
    """True if the token stays the same when every gap between two sums is off by up to `error` (units of 2**-40)."""
    if choice.gap - error > eta:
        return True  # top-1 is forced
    if error - choice.gap > eta:
        return False  # a rival can be emitted
    return no_retrieval_token == choice.top or choice.gap + error <= eta


def step_radius(
    scores: FixedPoint, choice: TokenChoice, no_retrieval_token: int, eta: int, slack: int, limit: int
) -> int:
    """Return the largest r <= limit such that substitution(r) cannot change this step's token.

    With D_u the sum of the r largest positive v_j[a] - v_j[u], E that of v_j[b] - v_j[a]: r attackers remove at most
    D_u from the lead of a over u and add at most r. `slack` (units of 2**-40) widens each comparison for rows whose
    probabilities are not reproducible to the bit.
    """
    total = scores.sum(axis=0)
    margin = total[choice.top] - total  # [V]: V_a - V_u
    held = scores[:, choice.top]
    lost = np.sort(held)[::-1].cumsum()  # by r - 1: no D_u exceeds the r largest v_j[a]

    def stable(r: int) -> bool:
        reach = r * ONE + slack
        # Tokens that stay behind even after the largest possible loss are left out; the top token is not its own rival.
        close = (margin <= eta + int(lost[min(r, len(lost)) - 1]) + reach).nonzero()[0]
        lead = _worst_lead(scores, margin, choice.top, close[close != choice.top], r)
        if lead is None or lead - reach > eta:
            return True  # top-1 is forced
        if reach - lead > eta:
            return False  # a rival can be emitted
        if no_retrieval_token == choice.top:
            return True  # it is emitted either way
        revenge = int(_largest_sum((scores[:, choice.runner_up] - held)[:, None], r)[0])
        return choice.gap + revenge + reach <= eta

    radius = 0
    while radius < limit and stable(radius + 1):
        radius += 1
    return radius


def _worst_lead(scores: FixedPoint, margin: FixedPoint, top: int, rivals: NDArray[np.intp], r: int) -> int | None:
    """The smallest V_a - V_u - D_u over these rivals; None without any.

    In blocks, so that memory stays small for large vocabularies.
    """
    blocks = [rivals[i : i + 4096] for i in range(0, len(rivals), 4096)]
    leads = [int((margin[u] - _largest_sum(scores[:, top, None] - scores[:, u], r)).min()) for u in blocks]
    return min(leads, default=None)


def _largest_sum(values: FixedPoint, r: int) -> FixedPoint:
    """The sum of the r largest positive entries of each column; `values` is [n, W]."""
    positive = np.maximum(values, 0)
    if r < len(positive):
        positive.partition(len(positive) - r, axis=0)
        positive = positive[len(positive) - r :]
    total: FixedPoint = positive.sum(axis=0)
    return total


@dataclass(frozen=True)
class TokenSpan:
    """The tokens that one step can emit next to m' corrupted sources.

    Attributes:
        kind: `top` (Case 1), `either` (Case 2), `fallback` (Case 3) or `open` (Case 4).
        tokens: the tokens that can be emitted; none for `open`, where they have no end.
    """

    kind: Literal["top", "fallback", "either", "open"]
    tokens: tuple[int, ...]


def possible_tokens(
    choice: TokenChoice, fallbacks: Sequence[int], corrupted: int, eta: int, slack: int = 0
) -> TokenSpan:
    """Return the tokens of the four cases of Algorithm 4, lines 10-21, for any gap, equality included.

    The corrupted sources move each sum by 0 to m'. A rival of the top token is out when even m' more leave it no lead
    above eta; the top token is forced when even m' for a rival leave it a lead above eta, and possible when m' more
    give it one. At A = B with eta >= m' the no-retrieval token comes either way.

    Args:
        choice: the untouched sources' step; only its top token and gap count.
        fallbacks: the no-retrieval token, or several where float noise leaves it open.
        corrupted: m'.
        eta: in units of 2**-40, as is `slack`, which widens every comparison.
        slack: for float noise.
    """
    reach = corrupted * ONE + slack
    if choice.gap - reach > eta:
        return TokenSpan("top", (choice.top,))
    if reach - choice.gap > eta:
        return TokenSpan("open", ())
    if choice.gap + reach > eta:
        return TokenSpan("either", tuple(dict.fromkeys((choice.top, *fallbacks))))
    return TokenSpan("fallback", tuple(dict.fromkeys(fallbacks)))


def certain_tokens(
    choice: TokenChoice, fallbacks: Sequence[int], corrupted: int, eta: int, slack: int, error: int, *, sure: bool
) -> TokenSpan | None:
    """`possible_tokens` of the numbers of inference, from numbers that differ; None where it could be something else.

    `error` bounds how far any gap of two sums is from that of inference; `sure`: the fallbacks are those of inference.
    """
    span = possible_tokens(choice, fallbacks, corrupted, eta, slack)
    if not error and sure:
        return span
    ends = (replace(choice, gap=max(choice.gap - error, 0)), replace(choice, gap=choice.gap + error))
    if any(possible_tokens(end, fallbacks, corrupted, eta, slack).kind != span.kind for end in ends):
        return None  # in between, the kind is the same: with the gap it only ever goes from open or fallback to top
    if span.kind in ("top", "either") and choice.gap <= error:
        return None  # another token may be on top
    return span if sure or span.kind in ("top", "open") else None
