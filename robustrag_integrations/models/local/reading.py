"""How a model's prompts are read: with shared prefixes where its architecture allows it, plainly elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from robustrag_integrations.forks import lock_held_over_forks
from robustrag_integrations.models.local.alone import Alone, Row, read_prefix
from robustrag_integrations.models.local.batch import Apart, Batch, PlainBatch
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.giving_up import carried_through
from robustrag_integrations.models.local.isolation import Isolation
from robustrag_integrations.models.local.isolation_probe import IsolationProbe, whole_tiles
from robustrag_integrations.models.local.key_values import KeyValues
from robustrag_integrations.models.local.masks import MaskRules, NoExplicitMasks
from robustrag_integrations.models.local.own_reading import UNREADABLE, check_own_reading, tolerance
from robustrag_integrations.models.local.packing import Stem
from robustrag_integrations.models.local.prefixes import BatchPrefixes, PrefixStore
from robustrag_integrations.models.local.shared import SharedBatch


@dataclass(frozen=True)
class _Way:
    """How prefixes are shared.

    Attributes:
        rules: the model's attention masks.
        once: whether decoding steps read a shared prefix once for all rows; or every row has a copy.
        row_by_row: whether they compute each row's attention by itself, over the columns that it has; or for all rows
            over as many as the settings say.
    """

    rules: MaskRules
    once: bool
    row_by_row: bool


class PromptReader:
    """Turns encoded prompts into a batch.

    Whether prefixes can be shared is found out at the first batch: from the model's configuration, and by reading a few
    tokens both ways. In which shapes several prompts can be read together is probed for every number of prompts.

    Args:
        lm: the model.
        share: whether to share prefixes at all.
        keep_bytes: bytes of prefixes kept from one call to the next.
        at_once: how many tokens are read in one forward pass.
        fixed_shapes: whether prompts are read and decoded in the shapes for accelerators.

    Attributes:
        prefixes: kept keys and values.
        probe: finds the shapes in which prompts are read together.
    """

    def __init__(self, lm: CausalLM, *, share: bool, keep_bytes: int, at_once: int, fixed_shapes: bool) -> None:
        self.lm, self.at_once, self.fixed_shapes = lm, at_once, fixed_shapes
        self.prefixes = PrefixStore(lm, keep_bytes)
        self._found: _Way | str | None = None if share else "switched off"
        self._is_checked = False
        self.probe = IsolationProbe(lm, at_once)
        self._lock = lock_held_over_forks()

    @property
    def why_not_shared(self) -> str | None:
        """Why prefixes are not shared; None if they are."""
        found = self._way()
        return found if isinstance(found, str) else None

    def in_words(self) -> str:
        """In which shapes prompts are read, for certificates."""
        if self.why_not_shared:
            return "all in one batch of a fixed width"
        return "each by itself, at its own length"

    def forget(self) -> None:
        """Drop kept prefixes, and everything that was found out and measured."""
        self.lm.forget()
        self.prefixes.clear()
        self.probe.forget()

    def alone(self, prompt: Encoded, room: int) -> Batch:
        """Lay out one prompt, at its own length.

        Args:
            prompt: what to read.
            room: how many tokens may come after it.
        """
        self._check()
        way = self._way()
        if isinstance(way, str):
            return PlainBatch(self.lm, [prompt.ids], 1 + len(prompt.ids), self.at_once)
        row = self._row(way.rules, prompt, self.prefixes.of_one_batch())
        return Alone(self.lm, way.rules, row, room=room, at_once=self.at_once)

    def apart(self, prompts: Sequence[Encoded], room: int) -> Batch:
        """`together` as batches of one prompt each."""
        return Apart([self.alone(prompt, room) for prompt in prompts])

    def together(
        self, prompts: Sequence[Encoded], longest: Sequence[int], room: int, strings: Sequence[Sequence[int]] = ()
    ) -> tuple[Batch, Isolation]:
        """Lay out prompts as rows of one batch.

        Args:
            prompts: what to read, two or more.
            longest: per prompt, how many tokens it could have had, whatever its passage; what no row decides follows
                from these.
            room: how many tokens may come after the prompts.
            strings: what is to be scored behind the prompts, as tokens.

        Returns:
            The batch, and what a prompt's numbers have to do with the other prompts.
        """
        self._check()
        way = self._way()
        count = len(prompts)
        if isinstance(way, str):
            width = whole_tiles(1 + max(longest))
            isolation = self.probe.plain(self.lm, count, width, strings)
            padding = isolation.padded - count
            return PlainBatch(self.lm, [p.ids for p in prompts], width, self.at_once, padding), isolation
        read = self.prefixes.of_one_batch()
        rows = [self._row(way.rules, p, read) for p in prompts]
        laid = self._shared(way, rows, longest, room)

        def lay(texts: Sequence[tuple[int, ...]], step_rows: int) -> Batch:
            """The probe's batch: in the shapes of the one asked for, with its prefix and some tokens."""
            trial = [Row(rows[0].prefix, text) for text in texts]
            alike = replace(way, once=laid.before > 0)
            return self._shared(alike, trial, [max(laid.longest, row.tokens) for row in trial], room, step_rows)

        isolation = self.probe.shared(lay, count, laid.step_shape, laid.longest - rows[0].shared)
        return self._shared(way, rows, longest, room, isolation.padded), isolation

    def _shared(
        self,
        way: _Way,
        rows: Sequence[Row],
        longest: Sequence[int],
        room: int,
        step_rows: int | None = None,
    ) -> SharedBatch:
        return SharedBatch(
            self.lm,
            way.rules,
            rows,
            longest=longest,
            room=room,
            at_once=self.at_once,
            once=way.once,
            row_by_row=way.row_by_row,
            step_rows=step_rows,
        )

    def stem(self, prompt: Encoded) -> Stem | None:
        """A row that has read a prompt's prefix, for trees of tokens to grow on; None where prefixes are not shared."""
        self._check()
        way = self._way()
        if isinstance(way, str):
            return None
        prefix = self._prefix(way.rules, prompt, self.prefixes.of_one_batch())
        places = torch.arange(1 + (prefix.tokens if prefix else 0), device=self.lm.device)[None]
        layers = prefix.layers if prefix else ()
        return Stem.after(self.lm, way.rules, layers, places[:, :-1], places[:, -1])

    def _row(self, rules: MaskRules, prompt: Encoded, read: BatchPrefixes) -> Row:
        """A prompt and its prefix."""
        return Row(self._prefix(rules, prompt, read), prompt.ids[prompt.shared :])

    def _prefix(self, rules: MaskRules, prompt: Encoded, read: BatchPrefixes) -> KeyValues | None:
        """The keys and values of how a prompt begins: what all questions share, then what this question's groups do.

        `read` has those of the batch's other prompts.
        """
        known: KeyValues | None = None
        for tokens in prompt.prefixes:
            begun, ids = known, prompt.ids[:tokens]
            known = read.get(ids, partial(read_prefix, self.lm, rules, ids, begun, self.at_once))
        return known

    def _check(self) -> None:
        """Refuse a model that reads prompts otherwise than decoders do, before its first one.

        Raises:
            ModelError: it does.
        """
        way = self._way()
        with self._lock:
            if not self._is_checked:
                with carried_through():
                    check_own_reading(self.lm, long=isinstance(way, str))
                self._is_checked = True

    def _way(self) -> _Way | str:
        with self._lock:
            if self._found is None:
                with carried_through():
                    self._found = _examine(self.lm, self.fixed_shapes)
            return self._found


def _examine(lm: CausalLM, fixed: bool) -> _Way | str:
    """The best way of sharing prefixes that gives what plain reading gives; else why there is none."""
    try:
        rules = MaskRules.of(lm)
    except NoExplicitMasks as reason:
        return str(reason)
    own = getattr(lm.config, "_attn_implementation", None) == "sdpa"  # which we can have read more, and row by row
    plainest = _Way(rules, once=False, row_by_row=False)
    ways = [_Way(rules, own, own and not fixed), plainest]
    for way in ways:
        wrong = _what_is_wrong(lm, way)
        if wrong is None:
            return way
    return str(wrong)


def _what_is_wrong(lm: CausalLM, way: _Way) -> str | None:
    try:
        gap, spread = _disagreement(lm, way)
    except UNREADABLE as error:
        return f"it cannot read with explicit masks: {type(error).__name__}: {error}"[:300]
    if not gap <= tolerance(lm.dtype) * spread:
        return f"reading a shared prefix gave other logits than plain reading (by {gap:.2g} of {spread:.2g})"
    return None


@torch.inference_mode()
def _disagreement(lm: CausalLM, way: _Way) -> tuple[float, float]:
    """How far logits differ between reading two short prompts with a shared prefix and plainly, and their spread."""
    vocabulary = lm.model.get_input_embeddings().weight.shape[0]
    tokens = [(7 * i + 3) % vocabulary for i in range(16)]
    prompts = [tokens[:9], [*tokens[:6], *tokens[10:16]]]
    prefix = read_prefix(lm, way.rules, tokens[:6], read_prefix(lm, way.rules, tokens[:4], None, 8), 8)
    rows = [Row(prefix, tuple(p[6:])) for p in prompts]
    shared = SharedBatch(
        lm,
        way.rules,
        rows,
        longest=[12, 12],
        room=2,
        at_once=6,
        once=way.once,
        row_by_row=way.row_by_row,
    )
    got = [shared.open([tokens[:2]]).logits, shared.append([tokens[5]] * 2)]
    plain = PlainBatch(lm, prompts, 14, 1000)
    wanted = [plain.open().logits, plain.append([tokens[5]] * 2)]
    alone = Alone(lm, way.rules, Row(None, tuple(prompts[0])), room=1, at_once=1000)
    got += [alone.open().logits, alone.append([tokens[5]])]
    wanted += [logits[:1] for logits in wanted]
    gap = max(float((g - w).abs().max()) for g, w in zip(got, wanted, strict=True))
    return gap, float(wanted[0].max() - wanted[0].min())
