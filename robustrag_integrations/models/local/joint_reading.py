"""Short prompts read several in a forward pass: for accelerators.

An accelerator reads the weights of a large model longer than it computes a short prompt, so the tokens of many prompts
stand behind each other in one pass. What they share are the products with the weights. Attention is each prompt's own,
over its own prefix and tokens, as if it were read by itself. So what a row's numbers could depend on besides its own
tokens is how many tokens a pass has, and where the row stands. A pass is filled up to one of a few numbers of tokens,
and only to such as were tried out: in each, rows at many places and among many others must have the bits that they have
in the smallest. Where the smallest is not exact in itself, and where a prompt is long enough by itself, prompts are
read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from robustrag_integrations.models.local.alone import Alone, Read, Row, read_alone
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.isolation import Kind, Trial
from robustrag_integrations.models.local.isolation_probe import IsolationProbe
from robustrag_integrations.models.local.joint import read_together
from robustrag_integrations.models.local.masks import MaskRules
from robustrag_integrations.models.local.trie import TokenTrie

ENOUGH = 256  # tokens with which a pass computes for longer than it reads the weights
_STEPS = 8  # numbers of tokens between one and twice as many
_LOGITS = 32  # numbers of logits are multiples of this
_TRIED = 64  # tokens of a row that a pass is tried out with, at most


@dataclass(frozen=True)
class PassShape:
    """The shape of a pass.

    Attributes:
        tokens: of all prompts, padding included.
        logits: of how many of them, padding included.
    """

    tokens: int
    logits: int

    @classmethod
    def of(cls, tokens: int, logits: int) -> PassShape:
        """The smallest that so many fit into."""
        if tokens <= ENOUGH:
            whole = ENOUGH
        else:
            step = 2 ** ((tokens - 1).bit_length() - 1) // _STEPS
            whole = -(-tokens // step) * step
        return cls(whole, -(-logits // _LOGITS) * _LOGITS)


@dataclass(frozen=True)
class JointReading:
    """Reads the prompts of a batch.

    Attributes:
        lm: the model; its attention is torch's `scaled_dot_product_attention`.
        rules: its attention masks.
        at_once: how many tokens are read in one pass at most.
        probe: finds out which shapes are exact.
    """

    lm: CausalLM
    rules: MaskRules
    at_once: int
    probe: IsolationProbe

    def read(self, rows: Sequence[Row], strings: Sequence[Sequence[int]]) -> list[Read]:
        """Read prompts, and score strings that may follow them."""
        trie = TokenTrie(string[:-1] for string in strings)
        least = PassShape.of(0, 1 + len(trie))
        short = [at for at, row in enumerate(rows) if len(row.rest) + len(trie) < ENOUGH]
        if self.at_once < least.tokens or not self._is_exact(least, least):
            short = []
        read = {
            at: read_alone(self.lm, self.rules, rows[at], strings, self.at_once)
            for at in set(range(len(rows))).difference(short)
        }
        for places, shape in self._parts(rows, short, len(trie), least):
            read.update(zip(places, self._several([rows[at] for at in places], shape, strings, trie), strict=True))
        return [read[at] for at in range(len(rows))]

    def _parts(
        self, rows: Sequence[Row], places: list[int], nodes: int, least: PassShape
    ) -> Iterator[tuple[list[int], PassShape]]:
        """Which rows are read in a pass, and in which shape."""
        shape = PassShape.of(sum(len(rows[at].rest) + nodes for at in places), len(places) * (1 + nodes))
        if len(places) < 2 or (shape.tokens <= self.at_once and self._is_exact(shape, least)):
            if places:
                yield places, shape
            return
        half = (len(places) + 1) // 2
        yield from self._parts(rows, places[:half], nodes, least)
        yield from self._parts(rows, places[half:], nodes, least)

    def _several(
        self, rows: Sequence[Row], shape: PassShape, strings: Sequence[Sequence[int]], trie: TokenTrie
    ) -> Iterator[Read]:
        stop_if_given_up()
        batches = [Alone(self.lm, self.rules, row, room=len(trie), at_once=self.at_once) for row in rows]
        stop_if_given_up()
        steps = [batch.reading(trie) for batch in batches]
        logits = read_together(self.lm, steps, shape.tokens, shape.logits, [1 + len(trie)] * len(steps))
        for batch, mine in zip(batches, logits, strict=True):
            opened = batch.was_read(mine, strings, trie)
            yield batch.cache.pairs(), opened

    def _is_exact(self, shape: PassShape, least: PassShape) -> bool:
        """Whether the probe finds that a row has the same bits everywhere in such a pass, and in the smallest."""
        rows = min(shape.tokens // _TRIED, shape.logits)
        alone = 1 if shape == least else least.tokens // _TRIED
        trials = [self._trial(least, alone), self._trial(shape, rows)]
        return self.probe.passes(trials, rows, _TRIED, (shape, least))

    def _trial(self, shape: PassShape, most: int) -> Trial:
        """Reads texts in passes of this shape, so many in each at most."""

        def trial(texts: Sequence[tuple[int, ...]], padded: int) -> Iterator[tuple[Kind, torch.Tensor]]:
            read = [
                one
                for start in range(0, len(texts), most)
                for one in self._several([Row(None, t) for t in texts[start : start + most]], shape, (), TokenTrie())
            ]
            for layer in zip(*(pairs for pairs, _ in read), strict=True):
                for kept in zip(*layer, strict=True):
                    yield Kind.KEPT, torch.cat([pad(k, (0, 0, _TRIED - k.shape[2], 0)) for k in kept])
            yield Kind.LOGITS, torch.cat([opened.logits for _, opened in read])

        return trial
