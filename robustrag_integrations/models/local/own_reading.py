"""Whether a prompt behind padding gives what the model alone gives for it: all other ways are compared with that.

Some architectures ignore the mask of padding, or count places in a way of their own. Their numbers would be wrong, and
depend on how long other prompts are. Others let a token see those after it: what was read of a prompt is wrong then, as
soon as an answer begins. What other rows do is the isolation probe's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.batch import PlainBatch
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import why_coupled

UNREADABLE = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a model raises that cannot be read in some way."""

_TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}  # of the spread of the logits; half precision below
_HALF_TOLERANCE = 0.1
_ERROR = 0.1  # of the spread: noise is less, also of logits that cancel, and padding that is seen moves more
_LENGTHS, _WIDTH = (9, 12), 24  # of two prompts, and with padding, in tokens
_LONG, _LONG_WIDTH = 160, 277  # the same of a long one: some layers join tokens by fours, others by 128


def tolerance(dtype: torch.dtype) -> float:
    """How far apart two ways of computing logits may be in a precision, as a share of the logits' spread."""
    return _TOLERANCE.get(dtype, _HALF_TOLERANCE)


def check_own_reading(lm: CausalLM, *, long: bool) -> None:
    """Compare prompts, and a token behind each, read behind padding and by themselves.

    Args:
        lm: the model.
        long: whether to compare a long prompt besides two short ones, as for layers of which nothing is known.

    Raises:
        ModelError: they differ by more than noise, a token sees those after it, or the model cannot be read like a
            decoder.
    """
    name = type(lm.model).__name__
    instead = "Serve it, and ask it with OpenAIModel, or pass a function to CallableModel"
    longest = min(_LONG, lm.window // 2) if long else 0
    try:
        ahead, whole = _seen_ahead(lm)
        gap, spread = _difference(lm, _LENGTHS, _WIDTH)
        if gap <= _ERROR * spread and longest > max(_LENGTHS):
            gap, spread = _difference(lm, (longest,), _LONG_WIDTH)
    except UNREADABLE as error:
        raise ModelError(
            f"{name} cannot be read as a decoder-only language model: {type(error).__name__}: "
            f"{str(error)[:300].rstrip('. ')}. {instead}"
        ) from error
    if not ahead <= tolerance(lm.dtype) * whole:
        raise ModelError(
            f"in {name} a token sees those after it (logits differ by {ahead:.2g} of {whole:.2g}): it is an encoder, "
            "and writes no answers. Choose a decoder-only model; one that was trained as a decoder has is_decoder=True "
            "in its configuration"
        )
    if not gap <= _ERROR * spread:
        raise ModelError(
            f"{name} reads a prompt behind padding otherwise than by itself (logits differ by {gap:.2g} of "
            f"{spread:.2g}): its answers would be wrong, and depend on other prompts' lengths. {instead}"
        )


@torch.inference_mode()
def _difference(lm: CausalLM, lengths: Sequence[int], width: int) -> tuple[float, float]:
    """How far logits behind prompts of these lengths differ, and their spread."""
    *tokens, following = _tokens(lm, sum(lengths) + 1)
    prompts = [tokens[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]
    padded = [PlainBatch(lm, [ids], width, 1000) for ids in prompts]
    got = torch.cat([logits for row in padded for logits in (row.open().logits, row.append([following]))])
    wanted = torch.cat([_alone(lm, found)[-1:] for ids in prompts for found in (ids, [*ids, following])])
    return _gap(got, wanted)


@torch.inference_mode()
def _seen_ahead(lm: CausalLM) -> tuple[float, float]:
    """How far logits within a prompt differ when something else follows, and their spread; in passes of one shape.

    0 where tokens of a pass have to do with each other by design, of which the isolation probe takes care.
    """
    if why_coupled(lm.model):
        return 0.0, 0.0
    tokens, kept = _tokens(lm, sum(_LENGTHS)), _LENGTHS[0]
    other = [*tokens[:kept], *reversed(tokens[kept:])]
    return _gap(_alone(lm, other)[:kept], _alone(lm, tokens)[:kept])


def _tokens(lm: CausalLM, count: int) -> list[int]:
    vocabulary = lm.model.get_input_embeddings().weight.shape[0]
    return [(7 * i + 3) % vocabulary for i in range(count)]


def _gap(got: torch.Tensor, wanted: torch.Tensor) -> tuple[float, float]:
    """The largest difference, and the spread; 0 where the model's own are no numbers, which is told elsewhere."""
    if not wanted.isfinite().all():
        return 0.0, 0.0
    return float((got - wanted).abs().max()), float(wanted.max() - wanted.min())


def _alone(lm: CausalLM, ids: list[int]) -> torch.Tensor:
    """[tokens, V] float32 logits behind each token of a prompt, as the model gives them to anybody."""
    given = torch.tensor([ids], device=lm.device)
    logits: torch.Tensor = lm.model(input_ids=given, attention_mask=torch.ones_like(given)).logits
    return logits[0].float()
