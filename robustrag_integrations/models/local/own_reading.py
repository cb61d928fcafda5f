"""Whether a prompt behind padding gives what the model alone gives for it: all other ways are compared with that.

Some architectures ignore the mask of padding, or count places in a way of their own. Their numbers would be wrong, and
depend on how long other prompts are. What other rows do is the isolation probe's business.
"""

from __future__ import annotations

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.batch import PlainBatch
from robustrag_integrations.models.local.causal_lm import CausalLM

UNREADABLE = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What a model raises that cannot be read in some way."""

_TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}  # of the spread of the logits; half precision below
_HALF_TOLERANCE = 0.1
_ERROR = (
    0.1  # of the spread: no noise is so large, be it that of logits that cancel, and padding that is seen moves more
)
_LENGTHS, _WIDTH = (9, 12), 24  # of two prompts, and with padding, in tokens


def tolerance(dtype: torch.dtype) -> float:
    """How far apart two ways of computing logits may be in a precision, as a share of the logits' spread."""
    return _TOLERANCE.get(dtype, _HALF_TOLERANCE)


def check_own_reading(lm: CausalLM) -> None:
    """Compare two short prompts, and a token behind each, read behind padding and by themselves.

    Raises:
        ModelError: they differ by more than noise, or the model cannot be read like a decoder.
    """
    name = type(lm.model).__name__
    instead = "Serve it, and ask it with OpenAIModel, or pass a function to CallableModel"
    try:
        gap, spread = _difference(lm)
    except UNREADABLE as error:
        raise ModelError(
            f"{name} cannot be read as a decoder-only language model: {type(error).__name__}: "
            f"{str(error)[:300].rstrip('. ')}. {instead}"
        ) from error
    if not gap <= _ERROR * spread:
        raise ModelError(
            f"{name} reads a prompt behind padding otherwise than by itself (logits differ by {gap:.2g} of "
            f"{spread:.2g}): its answers would be wrong, and depend on other prompts' lengths. {instead}"
        )


@torch.inference_mode()
def _difference(lm: CausalLM) -> tuple[float, float]:
    """How far logits differ, and their spread; 0 where the model's own are no numbers, which is told elsewhere."""
    vocabulary = lm.model.get_input_embeddings().weight.shape[0]
    tokens = [(7 * i + 3) % vocabulary for i in range(sum(_LENGTHS))]
    prompts, following = [tokens[: _LENGTHS[0]], tokens[_LENGTHS[0] :]], tokens[5]
    padded = [PlainBatch(lm, [ids], _WIDTH, 1000) for ids in prompts]
    got = torch.cat([logits for row in padded for logits in (row.open().logits, row.append([following]))])
    wanted = torch.cat([_alone(lm, found) for ids in prompts for found in (ids, [*ids, following])])
    if not wanted.isfinite().all():
        return 0.0, 0.0
    return float((got - wanted).abs().max()), float(wanted.max() - wanted.min())


def _alone(lm: CausalLM, ids: list[int]) -> torch.Tensor:
    """[1, V] float32 logits behind a prompt, as the model gives them to anybody."""
    given = torch.tensor([ids], device=lm.device)
    logits: torch.Tensor = lm.model(input_ids=given, attention_mask=torch.ones_like(given)).logits
    return logits[:, -1].float()
