"""In which numbers of rows decoding steps can be shared, so that a row has the same bits in each of them.

How many questions are being answered decides how many rows a shared step has. It must not decide anybody's bits: not
those of one user by what others ask, and not those of an answer by when it was asked. So a step is filled up to the
next of a few numbers of rows, and only to such as were tried out: in each, tokens at many places, among many others,
must have the bits that they have in the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.isolation import why_coupled
from robustrag_integrations.models.local.joint import first_tokens
from robustrag_integrations.models.local.summation import HALF, Summation

_SMALL = (4, 8, 16, 32, 48)  # numbers of rows to try; from 64 on, each half as many again as the one before or so
_BLOCK = 32  # the largest is a multiple of this
_TOKENS = 8  # different tokens at the places of a step
LAYOUTS = 3  # that a step is tried in


@dataclass(frozen=True)
class StepShapes:
    """What was found out about shared steps.

    Attributes:
        rows: numbers of rows in which a row has the same bits; the largest last. Empty where steps are not shared.
        why_not: why they are not.
    """

    rows: tuple[int, ...] = ()
    why_not: str | None = None

    def of(self, rows: int) -> int | None:
        """The smallest step that so many rows fit into; None if there is none."""
        return next((number for number in self.rows if number >= rows), None)

    def in_words(self) -> str:
        """For certificates."""
        if self.why_not is not None:
            return f"not shared between questions: {self.why_not}"
        return f"shared between questions, in {', '.join(map(str, self.rows))} rows, with the same bits in each"


def find_step_shapes(lm: CausalLM, most: int) -> StepShapes:
    """Try out steps of up to so many rows."""
    if (coupled := why_coupled(lm.model)) is not None:
        return StepShapes(why_not=coupled)
    tokens = trial_tokens(lm)
    sums = Summation(len(tokens)) if lm.dtype in HALF else None
    top = -(-most // _BLOCK) * _BLOCK
    try:
        wanted = _bits(lm, tokens, [place % len(tokens) for place in range(top)], sums)[: len(tokens)]
        same = [rows for rows in (*_candidates(top), top) if _has_bits(lm, rows, tokens, wanted, sums)]
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return StepShapes(why_not=f"the model cannot take such a step: {type(error).__name__}: {error}"[:300])
    if top not in same:
        return StepShapes(why_not=f"the probe found that rows of a step of {top} move each other's bits")
    return StepShapes(tuple(same))


def trial_tokens(lm: CausalLM) -> list[int]:
    """Different tokens for the places of a step, some with the largest embeddings."""
    embeddings = lm.model.get_input_embeddings().weight.detach()
    largest: list[int] = embeddings.float().norm(dim=-1).topk(min(_TOKENS // 2, len(embeddings))).indices.tolist()
    return [*largest, *((7919 * i + 11) % len(embeddings) for i in range(_TOKENS - len(largest)))]


def arrangement(rows: int, tokens: int, layout: int) -> list[int]:
    """Which of so many tokens stands at each place of a step."""
    stride = 2 * layout + 1
    return [(stride * place + place // tokens * layout + layout) % tokens for place in range(rows)]


def _candidates(top: int) -> Iterator[int]:
    yield from (rows for rows in _SMALL if rows < top)
    rows = 64
    while rows < top:
        yield rows
        rows = rows * 3 // 2 if rows & (rows - 1) == 0 else rows * 4 // 3


def _has_bits(lm: CausalLM, rows: int, tokens: Sequence[int], wanted: torch.Tensor, sums: Summation | None) -> bool:
    """Whether tokens have these bits at all places of a step, whatever stands beside them."""
    for layout in range(LAYOUTS):
        kinds = arrangement(rows, len(tokens), layout)
        if not torch.equal(_bits(lm, tokens, kinds, sums), wanted[kinds]):
            return False
    return True


def _bits(lm: CausalLM, tokens: Sequence[int], kinds: Sequence[int], sums: Summation | None) -> torch.Tensor:
    """[rows, bytes] of everything that a step computes of prompts of one token, and the order in which it sums up."""
    parts: list[torch.Tensor] = []
    if sums is not None:
        sums.begin(kinds)
    with sums or nullcontext():
        ids = [tokens[kind] for kind in kinds]
        logits = first_tokens(lm, ids, lambda keys, values: parts.extend((keys.clone(), values.clone())))
    everything = (*parts, logits, *(sums.found.values() if sums else ()))
    return torch.cat([part.reshape(len(ids), -1).contiguous().view(torch.uint8) for part in everything], dim=1)
