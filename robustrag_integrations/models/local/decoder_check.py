"""Reference logits of short prompts by a model's own code, with which every other way of reading is compared.

Some architectures keep no cache of the library's kind, or count positions in a way of their own: their numbers would be
wrong. Others let a token see those after it: what was read of a prompt is then wrong as soon as an answer begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.coupling import why_coupled
from robustrag_integrations.models.local.plain import PlainPrompt

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
"""The errors of a model that cannot be read in some way."""

_TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}  # of the spread of the logits; half precision below
_HALF_TOLERANCE = 0.1
_ERROR = 0.1  # of the spread: noise is smaller, even for logits that cancel
_LENGTHS = (9, 12)  # of two prompts, in tokens
_LONG = 160  # of a long one: some layers join tokens by fours, others by 128
_INSTEAD = "Serve it, and ask it with OpenAIModel, or pass a function to CallableModel"


@dataclass(frozen=True)
class OwnReading:
    """A prompt as the model's own code reads it.

    Attributes:
        ids: the prompt.
        following: a token that follows it.
        logits: [2, V] float32, behind the prompt, and behind that token.
    """

    ids: list[int]
    following: int
    logits: torch.Tensor

    def gap(self, logits: torch.Tensor) -> tuple[float, float]:
        """Return the largest distance of other logits [2, V] from these, and the spread of these; 0 if not finite."""
        if not self.logits.isfinite().all():
            return 0.0, 0.0
        return float((logits - self.logits).abs().max()), float(self.logits.max() - self.logits.min())


def tolerance(dtype: torch.dtype) -> float:
    """Return the tolerated distance between two computations of logits in a precision, as a share of their spread."""
    return _TOLERANCE.get(dtype, _HALF_TOLERANCE)


@torch.inference_mode()
def own_readings(lm: CausalLM) -> list[OwnReading]:
    """Read two short prompts that begin alike by the model's own code.

    Raises:
        ModelError: a token sees those after it, or the model cannot be read like a decoder.
    """
    *tokens, following = _tokens(lm, sum(_LENGTHS) + 1)
    try:
        whole = [_logits(lm, [*tokens[:length], following]) for length in _LENGTHS]
        ahead, spread = _seen_ahead(lm, [*tokens[: _LENGTHS[-1]], following], whole[-1])
    except UNREADABLE as error:
        raise _unreadable(lm, error) from error
    if not ahead <= tolerance(lm.dtype) * spread:
        raise ModelError(
            f"in {type(lm.model).__name__} a token sees those after it (logits differ by {ahead:.2g} of {spread:.2g}): "
            "it is an encoder, and writes no answers. Choose a decoder-only model; one that was trained as a decoder "
            "has is_decoder=True in its configuration"
        )
    return [OwnReading(tokens[:length], following, logits[-2:]) for length, logits in zip(_LENGTHS, whole, strict=True)]


@torch.inference_mode()
def check_steps(lm: CausalLM, readings: list[OwnReading]) -> bool:
    """Compare a token behind a prompt in the cache with the model's own reading of the whole.

    Returns:
        True if the logits are the same bits when they are computed again.

    Raises:
        ModelError: the two differ by more than noise.
    """
    try:
        readings = [*readings, _long_reading(lm)]
        first, again = ([_steps(lm, reading) for reading in readings] for _ in range(2))
    except UNREADABLE as error:
        raise _unreadable(lm, error) from error
    for reading, steps in zip(readings, first, strict=True):
        gap, spread = reading.gap(steps)
        if not gap <= _ERROR * spread:
            raise ModelError(
                f"{type(lm.model).__name__} reads a token behind its cache otherwise than in one pass (logits differ "
                f"by {gap:.2g} of {spread:.2g}): its answers would be wrong. {_INSTEAD}"
            )
    return all(map(torch.equal, first, again))


def _long_reading(lm: CausalLM) -> OwnReading:
    most = getattr(lm.config, "max_position_embeddings", None) or 2 * _LONG
    *ids, following = _tokens(lm, min(_LONG, most // 2) + 1)
    return OwnReading(ids, following, _logits(lm, [*ids, following])[-2:])


def _steps(lm: CausalLM, reading: OwnReading) -> torch.Tensor:
    prompt = PlainPrompt(lm, reading.ids)
    return torch.cat([prompt.open().logits, prompt.append([reading.following])])


def _unreadable(lm: CausalLM, error: Exception) -> ModelError:
    return ModelError(
        f"{type(lm.model).__name__} cannot be read as a decoder-only language model: {type(error).__name__}: "
        f"{str(error)[:300].rstrip('. ')}. {_INSTEAD}"
    )


def _seen_ahead(lm: CausalLM, tokens: list[int], logits: torch.Tensor) -> tuple[float, float]:
    """Return how far logits within a prompt differ when something else follows, and their spread; in one shape.

    0 where the tokens of a pass depend on each other by design, which the isolation probe covers.
    """
    kept = _LENGTHS[0]
    if why_coupled(lm) or not logits.isfinite().all():
        return 0.0, 0.0
    other = _logits(lm, [*tokens[:kept], *reversed(tokens[kept:])])
    return float((other[:kept] - logits[:kept]).abs().max()), float(logits.max() - logits.min())


def _tokens(lm: CausalLM, count: int) -> list[int]:
    vocabulary = lm.model.get_input_embeddings().weight.shape[0]
    return [(7 * i + 3) % vocabulary for i in range(count)]


def _logits(lm: CausalLM, ids: list[int]) -> torch.Tensor:
    """Return the [tokens, V] float32 logits behind each token of a prompt, by a plain call of the model."""
    given = torch.tensor([ids], device=lm.device)
    logits: torch.Tensor = lm.model(input_ids=given, attention_mask=torch.ones_like(given)).logits
    return logits[0].float()
