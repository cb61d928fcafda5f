"""Bounds on float noise where results of other shapes stand in for those of inference.

Forward passes over many continuations at once differ from plain inference by float noise, as
kernels sum in another order. Measured in float32 on one CPU thread, over trees of up to 60 nodes on
11 rows and tries of 24 to 64 prompts, with the bundled reader, random Llama, Mistral (with a window), GPT-2 and NeoX
models, and a random Llama of 125 million parameters: no probability moved by more than 5e-6, no logit by more than 6e-6
of the largest one; for the largest model it was 1e-6. A model whose output rows all but cancel has far more.
"""

from __future__ import annotations

LEAST_NOISE = 2.0**-15  # the smallest bound, and the most that float32 explains
SAFETY = 32  # the bound is so many times what was measured


def noise_bound(measured: float) -> float | None:
    """A bound on the noise all over a model and question of which this much was measured at one place.

    None where that is more than float32 explains: something other than noise is at work, and other shapes cannot stand
    in for those of inference.
    """
    return max(LEAST_NOISE, SAFETY * measured) if measured <= LEAST_NOISE else None
