"""How likely given replies are after a prompt: they are read behind it, and nothing is generated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from robustrag_integrations.models.base import Scores
from robustrag_integrations.models.local.plain import PlainPrompt
from robustrag_integrations.models.local.prompt import SinglePrompt
from robustrag_integrations.replies.confidence import LOWEST

Tokens = Sequence[int]


@torch.inference_mode()
def reply_scores(prompt: SinglePrompt | PlainPrompt, texts: Sequence[Sequence[Tokens]], ends: Tokens) -> Scores | None:
    """Return the log-probability of each text as the whole reply to a prompt: the sum over its spellings.

    Args:
        prompt: the prompt, not read yet.
        texts: per text, the token sequences that spell it; one without any has the lowest score.
        ends: the tokens that may end a reply.

    Returns:
        Per text, a number from `LOWEST` to 0; None if one of them is NaN.
    """
    spelled = list(dict.fromkeys(tuple(tokens) for ways in texts for tokens in ways))
    stops = torch.tensor(list(ends))
    known: dict[tuple[int, ...], float] = {}
    for tokens, logits in zip(spelled, prompt.behind(spelled), strict=True):
        logprobs = logits.double().log_softmax(-1).cpu()
        said = sum(float(logprobs[at, token]) for at, token in enumerate(tokens))
        known[tokens] = said + float(logprobs[-1, stops].logsumexp(-1))
    found = [_sum([known[tuple(tokens)] for tokens in ways]) for ways in texts]
    return None if any(map(math.isnan, found)) else found


def _sum(logprobs: Sequence[float]) -> float:
    """Add probabilities that are given as logarithms."""
    if any(map(math.isnan, logprobs)):
        return math.nan
    most = max(logprobs, default=LOWEST)
    total = most if most <= LOWEST else most + math.log(math.fsum(math.exp(value - most) for value in logprobs))
    return min(0.0, max(LOWEST, total))
