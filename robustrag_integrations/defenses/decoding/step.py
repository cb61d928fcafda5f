"""One step of decoding: the groups that take part, the chosen token, and the end of the answer (paper, Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    FixedPoint,
    TokenChoice,
    choose_token,
    fixed_point,
    is_decided,
    most_probable,
)
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Distributions
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class DecodingStep:
    """One decoding step: its scores, the chosen token, and the error bounds of the choice.

    Attributes:
        scores: [n, V] fixed-point distributions of the answering groups.
        fallback: the no-retrieval token.
        choice: the token.
        error: a bound on the error of any gap between two sums, where the model listed only some of the tokens.
        shift: a bound on how far other groups' content may move any gap between two of these groups' sums, or between
            two probabilities of the no-retrieval prompt, since all of them share batches.
    """

    scores: FixedPoint
    fallback: int
    choice: TokenChoice
    error: int
    shift: int = 0

    def decided(self, eta: int) -> bool:
        """True if the probabilities of all tokens would give the same token."""
        return not self.error or is_decided(self.choice, self.fallback, eta, self.error)


def choose_step(distributions: Distributions, answering: Sequence[int], eta: int) -> DecodingStep:
    """Choose the token of one decoding step.

    The no-retrieval token is the most probable one, the lowest id among equals.
    """
    scores = fixed_point(distributions.groups[list(answering)])
    fallback = most_probable(distributions.no_retrieval)
    untold = sum(distributions.unlisted[j] for j in answering) if distributions.unlisted else 0.0
    choice = choose_token(scores, fallback, eta)
    return DecodingStep(
        scores, fallback, choice, math.ceil(untold * ONE), largest_shift(distributions.moved, len(answering))
    )


def largest_shift(noise: float, groups: int) -> int:
    """Bound the error of a gap between two sums over so many groups, in units of 2**-40, by each probability's."""
    return math.ceil(2 * max(1, groups) * noise * ONE)


def rows_too_noisy(noise: float, settings: DecodingSettings) -> str:
    """Explain why nothing is promised of a model whose probabilities move by so much for the same prompt."""
    return (
        f"each probability of this model can move by {noise:.1e} for the same prompt, and their sums by more than "
        f"slack={settings.slack_units / ONE:.1e} allows for (`numerics` of the model says why)"
    )


def who_answers(groups: Sequence[PassageGroup], abstention: NDArray[np.floating], gamma: float) -> list[int]:
    """Return J, the groups whose probability of the whole abstention string is below gamma (Algorithm 2, line 3).

    One without a probability (NaN) is not below it; an empty one abstains whatever the model makes of an empty prompt.
    """
    return [j for j, p in enumerate(abstention) if float(p) < gamma and not groups[j].is_empty]


def unsettled(groups: Sequence[PassageGroup], abstention: NDArray[np.floating], settings: DecodingSettings) -> set[int]:
    """Return the groups for which float noise, up to the slack, decides whether they answer."""
    slack = settings.slack_units / ONE
    fewer, more = (set(who_answers(groups, abstention, settings.gamma + shift)) for shift in (-slack, slack))
    return more - fewer


def extend(text: IncrementalDetokenizer, token: int, max_new_tokens: int) -> tuple[str, bool]:
    """Add a chosen token to the answer; return the piece that can be shown now, and whether the answer is complete."""
    if text.codec.is_end(token):
        return "", True
    piece = text.add(token)
    return piece, text.stopped or len(text.tokens) == max_new_tokens
