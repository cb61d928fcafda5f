"""In which numbers of rows drafts can be read, so that a token has the same bits as in a plain step.

Found out on a model once, with a prompt of its own: tokens at all places of a step, some with the largest embeddings,
in three arrangements, must have the keys, values and logits that they have in the largest step, and each product must
sum up in the same order. The smallest number of rows in which that is so is that of plain steps. Accelerators, whose
sums in norms may depend on the number of rows, too, take all steps in the largest.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from robustrag_integrations.models.local.alone import Alone, Row
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.drafted_row import DraftedRow
from robustrag_integrations.models.local.isolation import why_coupled
from robustrag_integrations.models.local.masks import MaskRules
from robustrag_integrations.models.local.step_shapes import LAYOUTS, StepShapes, arrangement, trial_tokens
from robustrag_integrations.models.local.summation import HALF, Summation
from robustrag_integrations.models.local.trie import TokenTrie

MOST_NODES = 64  # tokens of drafts in one pass; beyond, reading them costs what they save
_ROWS = (4, 16, 32, MOST_NODES)
_PROMPT = 12  # tokens of the trial's prompt
_SAID = 8  # tokens of the model's own answer that are read both ways


def find_draft_shapes(lm: CausalLM, rules: MaskRules, tolerance: float) -> StepShapes:
    """The numbers of rows for a prompt that is decoded by itself; none where plain steps are of one row, and why.

    Args:
        lm: the model.
        rules: its attention masks.
        tolerance: how far apart two ways of computing logits may be, as a share of the logits' spread.
    """
    if (why_not := _why_of_no_use(lm)) is not None:
        return StepShapes(why_not=why_not)
    tokens = trial_tokens(lm)
    try:
        trial = _Trial(lm, rules, tokens)
        wanted = trial.bits(MOST_NODES, [place % len(tokens) for place in range(MOST_NODES)])[: len(tokens)]
        tried = _ROWS if lm.device.type == "cpu" else _ROWS[-1:]
        same = tuple(rows for rows in tried if trial.has_bits(rows, wanted))
        as_usual = trial.is_as_usual(tolerance)
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return StepShapes(why_not=f"the model cannot take such a step: {type(error).__name__}: {error}"[:300])
    if not as_usual:
        return StepShapes(why_not="a step of several rows gave other logits than a step of one")
    if MOST_NODES not in same:
        return StepShapes(why_not=f"rows of a step of {MOST_NODES} move each other's bits")
    return StepShapes(same)


def has_same_bits(plain: DraftedRow, drafted: DraftedRow, shapes: StepShapes, most: int) -> bool:
    """Whether what a model says by itself has the bits of plain steps when it is read as a draft, among others.

    Args:
        plain, drafted: one prompt, not read yet.
        shapes: the numbers of rows to try.
        most: how many tokens may follow the prompt.
    """
    logits = plain.open().logits
    tokens, wanted = list[int](), list[torch.Tensor]()
    while len(tokens) < min(_SAID, most - 1):
        tokens.append(int(logits.argmax(-1)[0]))
        logits = plain.append(tokens[-1:])
        wanted.append(_bits_of(plain, logits))
    drafted.open()
    for rows in shapes.rows:
        trie = TokenTrie([tokens[: rows // 2]])
        for other in range(rows):  # branches of all lengths beside it, and a row of padding
            trie.add([*tokens[: other % (1 + len(tokens))], other, *tokens][:most], rows - 1)
        found = _bits_of(drafted, drafted.read_in(rows, trie.tokens, trie.lines()))
        path = trie.path(tokens[: rows // 2])
        if path and not torch.equal(found[path], torch.cat(wanted[: len(path)])):
            return False
    return True


def _why_of_no_use(lm: CausalLM) -> str | None:
    if lm.dtype not in HALF:
        return "in full precision drafts stand by their lead"
    if lm.dtype == torch.float16 and lm.device.type == "cpu":
        return "in float16 a CPU computes rows one after another"
    return why_coupled(lm.model)


class _Trial:
    """Steps behind a prompt of its own.

    Args:
        lm: the model.
        rules: its attention masks.
        tokens: that stand in the rows of a step.
    """

    def __init__(self, lm: CausalLM, rules: MaskRules, tokens: Sequence[int]) -> None:
        self._lm, self._rules, self._tokens = lm, rules, tokens
        self._row = DraftedRow(self._prompt(), lm, rules, StepShapes((MOST_NODES,)))
        self._row.open()
        self._sums = Summation(len(tokens))

    def has_bits(self, rows: int, wanted: torch.Tensor) -> bool:
        """Whether tokens have these bits at all places of a step, whatever stands beside them."""
        arranged = [arrangement(rows, len(self._tokens), layout) for layout in range(LAYOUTS)]
        return all(torch.equal(self.bits(rows, kinds), wanted[kinds]) for kinds in (*arranged, [0]))

    def bits(self, rows: int, kinds: Sequence[int]) -> torch.Tensor:
        """[kinds, bytes] of everything that a step of so many rows computes of these tokens."""
        count = len(kinds)
        self._sums.begin([*kinds, *[0] * (rows - count)])
        with self._sums:
            logits = self._row.read_in(rows, [self._tokens[k] for k in kinds], [(node,) for node in range(count)])
        sums = [_bytes(left[:count]) for left in self._sums.found.values()]
        return torch.cat([_bits_of(self._row, logits), *sums], dim=1)

    def is_as_usual(self, tolerance: float) -> bool:
        """Whether a step gives the logits of a step of one row, but for noise."""
        alone = self._prompt()
        alone.open()
        wanted, got = alone.append(self._tokens[:1]), self._row.append(self._tokens[:1])
        return float((got - wanted).abs().max()) <= tolerance * float(wanted.max() - wanted.min())

    def _prompt(self) -> Alone:
        vocabulary = self._lm.model.get_input_embeddings().weight.shape[0]
        prompt = tuple((7 * i + 3) % vocabulary for i in range(_PROMPT))
        return Alone(self._lm, self._rules, Row(None, prompt), room=1, at_once=_PROMPT)


def _bits_of(row: DraftedRow, logits: torch.Tensor) -> torch.Tensor:
    """[tokens, bytes] of what the last step computed of its tokens, whose logits these are."""
    parts = [*(kept[: len(logits)] for pair in row.new for kept in pair), logits]
    return torch.cat([_bytes(part) for part in parts], dim=1)


def _bytes(numbers: torch.Tensor) -> torch.Tensor:
    """[rows, bytes] of [rows, ...]."""
    return numbers.reshape(len(numbers), -1).contiguous().view(torch.uint8)
