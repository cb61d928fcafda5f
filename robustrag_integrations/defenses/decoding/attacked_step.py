"""Tokens that a decoding step can emit next to corrupted groups (paper, Algorithm 4, lines 10-21; lemmas 1 to 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from robustrag_integrations.defenses.decoding.token_choice import ONE, TokenChoice

StepKind = Literal["top", "fallback", "either", "open"]


@dataclass(frozen=True)
class TokenSpan:
    """The tokens that one step can emit next to m' corrupted groups.

    Attributes:
        kind: `top` (Case 1), `either` (Case 2), `fallback` (Case 3) or `open` (Case 4).
        tokens: the tokens that can be emitted; none for `open`, where they have no end.
    """

    kind: StepKind
    tokens: tuple[int, ...]


def possible_tokens(
    choice: TokenChoice, fallbacks: Sequence[int], corrupted: int, eta: int, slack: int = 0
) -> TokenSpan:
    """Return the tokens of the four cases of Algorithm 4, lines 10-21, for any gap, equality included.

    The corrupted groups move each sum by 0 to m'. A rival of the top token is out when even m' more leave it no lead
    above eta; the top token is forced when even m' for a rival leave it a lead above eta, and possible when m' more
    give it one. At A = B with eta >= m' the no-retrieval token comes either way.

    Args:
        choice: the untouched groups' step; only its top token and gap count.
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

    Args:
        choice, fallbacks, corrupted, eta, slack: as for `possible_tokens`.
        error: a bound on the distance of any gap of two sums from that of inference, in units of 2**-40.
        sure: True if the no-retrieval tokens are those of inference.
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
