"""How much float noise is reckoned with where results of other shapes stand in for those of inference.

Forward passes over many continuations at once (and drafts read together with their prompt) differ from plain inference
by float noise, as kernels sum in another order. Measured in float32 on one CPU thread, over trees of up to 60 nodes on
11 rows and tries of 24 to 64 prompts, with the bundled reader, random Llama, Mistral (with a window), GPT-2 and NeoX
models, and a random Llama of 125 million parameters: no probability moved by more than 5e-6, no logit by more than 6e-6
of the largest one; for the largest model it was 1e-6.
"""

from __future__ import annotations

LOGIT_NOISE = 2.0**-12  # of the largest logit: reckoned with where nothing is measured; 40 times the worst above
LEAST_NOISE = 2.0**-15  # what is reckoned with at least where it is measured; more than that must not be measured
SAFETY = 32  # times what was measured is reckoned with


def noise_bound(measured: float) -> float | None:
    """The noise to reckon with all over a model and question of which this much was measured at one place.

    None where that is more than float32 explains: something other than noise is at work, and other shapes cannot stand
    in for those of inference.
    """
    return max(LEAST_NOISE, SAFETY * measured) if measured <= LEAST_NOISE else None
