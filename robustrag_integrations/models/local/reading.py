"""Reading a model's prompts: with shared prefixes where its architecture allows it, each by itself elsewhere.

The prefix of all questions' prompts is read once and kept (`PrefixStore`), then the one of this question's prompts;
behind these, each prompt reads its own passage by itself. All rows take decoding steps together, in shapes that no
passage decides and in a number of rows that the isolation probe found exact.

A model is examined before its first prompt. It reads two short prompts by its own code; then in the ways of sharing
that its configuration allows, the best first, and the first that gives the same logits is taken. Where there is none,
each prompt is a batch of its own, if the model gives the same logits from its cache; else it is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.attention import Pair
from robustrag_integrations.models.local.batch import Batch, SeparateBatches
from robustrag_integrations.models.local.cache import KeyValues
from robustrag_integrations.models.local.cancellation import uncancelled
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.decoder_check import (
    UNREADABLE,
    OwnReading,
    check_steps,
    own_readings,
    tolerance,
)
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.isolation import Isolation, IsolationProbe, Text
from robustrag_integrations.models.local.masks import MaskRules, NoExplicitMasks
from robustrag_integrations.models.local.memo import ModelMemo
from robustrag_integrations.models.local.plain import PlainPrompt
from robustrag_integrations.models.local.prefixes import BatchPrefixes, PrefixStore
from robustrag_integrations.models.local.prompt import STRING_TOKENS, Row, SinglePrompt, read_prefix
from robustrag_integrations.models.local.rows import PromptRows
from robustrag_integrations.models.local.token_tree import Stem


@dataclass(frozen=True)
class _Way:
    """A way of sharing prefixes.

    Attributes:
        rules: the model's attention masks.
        once: True if decoding steps read a shared prefix once for all rows; otherwise every row has a copy.
        row_by_row: True if they compute each row's attention by itself, over the columns that it has; otherwise for all
            rows, over as many columns as the settings allow.
    """

    rules: MaskRules
    once: bool
    row_by_row: bool


class PromptReader:
    """Turns encoded prompts into a batch.

    Args:
        lm: the model.
        share: True to share prefixes at all.
        keep_bytes: bytes of prefixes kept from one call to the next.
        at_once: number of tokens that are read in one forward pass.
        fixed_shapes: True if decoding steps attend in the shapes for accelerators.

    Attributes:
        prefixes: kept keys and values.
        probe: finds the shapes in which prompts are read together.
    """

    def __init__(self, lm: CausalLM, *, share: bool, keep_bytes: int, at_once: int, fixed_shapes: bool) -> None:
        self.lm, self.at_once, self.fixed_shapes = lm, at_once, fixed_shapes
        self.prefixes = PrefixStore(lm, keep_bytes)
        self.probe = IsolationProbe(lm)
        self._examined: _Way | str | None = None if share else "switched off"
        self._repeats = ModelMemo[bool](lm)  # whether prompts that share nothing give the same numbers again
        self._lock = threading.Lock()

    @property
    def why_not_shared(self) -> str | None:
        """The reason why prefixes are not shared; None if they are."""
        way = self._way()
        return way if isinstance(way, str) else None

    @property
    def is_repeatable(self) -> bool:
        """True unless a prompt was seen to give other numbers when it is read again."""
        return all(self._repeats.values) and all(result.repeatable for result in self.probe.results)

    def forget(self) -> None:
        """Drop the kept prefixes and all measurements."""
        self.lm.forget()
        self.prefixes.clear()
        self.probe.forget()
        self._repeats.clear()

    def alone(self, prompt: Encoded, room: int, *, keep: bool = False) -> Batch:
        """Lay out one prompt, at its own length.

        Args:
            prompt: the prompt to read.
            room: number of tokens that may come after it.
            keep: True to keep what is read for `behind`.
        """
        way = self._checked_way()
        if isinstance(way, str):
            return PlainPrompt(self.lm, prompt.ids)
        row = self._row(way.rules, prompt, self.prefixes.of_one_batch(), keep)
        return SinglePrompt(self.lm, way.rules, row, room=room, at_once=self.at_once)

    def behind(self, prompt: Encoded) -> SinglePrompt | PlainPrompt:
        """Lay out one prompt for strings to be read behind it; what was kept of it is not read again.

        Its last token is read with the strings. The numbers are the same whether it was kept or not.
        """
        way = self._checked_way()
        if isinstance(way, str):
            return PlainPrompt(self.lm, prompt.ids)
        prefixes = self.prefixes.of_one_batch()
        read = prefixes.prompt(prompt.ids)
        if read is None:
            row = self._row(way.rules, prompt, prefixes)
            alone = SinglePrompt(self.lm, way.rules, row, room=0, at_once=self.at_once)
            alone.open()
            read = alone.key_values()
        layers = tuple((keys[:, :, :-1], values[:, :, :-1]) for keys, values in read.layers)
        row = Row(KeyValues(layers, read.tokens - 1), prompt.ids[-1:])
        return SinglePrompt(self.lm, way.rules, row, room=STRING_TOKENS, at_once=self.at_once)

    def apart(self, prompts: Sequence[Encoded], room: int, *, keep: bool = False) -> Batch:
        """Lay out prompts in batches of one."""
        return SeparateBatches([self.alone(prompt, room, keep=keep) for prompt in prompts])

    def together(
        self, prompts: Sequence[Encoded], longest: Sequence[int], room: int, *, keep: bool = False
    ) -> tuple[Batch, Isolation]:
        """Lay out prompts as rows of one batch, where prefixes are shared.

        Args:
            prompts: the prompts to read, two or more.
            longest: per prompt, the most tokens that it could have had, whatever its passage; shapes follow from these,
                so that no row decides them.
            room: number of tokens that may come after the prompts.
            keep: True to keep what is read for `behind`.

        Returns:
            The batch, and the isolation of its rows.
        """
        way = self._checked_way()
        count = len(prompts)
        if isinstance(way, str):
            repeatable = all(self._repeats.values)
            return self.apart(prompts, room, keep=keep), Isolation(count, count, repeatable, repeatable=repeatable)
        read = self.prefixes.of_one_batch()
        rows = [self._row(way.rules, p, read, keep) for p in prompts]
        laid = self._rows(way, rows, longest, room)

        def lay(texts: Sequence[Text], step_rows: int) -> PromptRows:
            """Lay out the probe's batch, in the shapes of the actual one, with its prefix if that is kept once."""
            prefix = laid.cache.shared
            trial = [Row(prefix, text) for text in texts]
            most = [max(laid.longest, row.tokens) for row in trial]
            return self._rows(replace(way, once=prefix is not None), trial, most, room, step_rows)

        def read_text(text: Text) -> Sequence[Pair]:
            return read_prefix(self.lm, way.rules, text, None, self.at_once).layers

        isolation = self.probe.steps(lay, read_text, count, laid.step_shape, laid.longest - laid.before)
        return self._rows(way, rows, longest, room, isolation.padded), isolation

    def _rows(
        self, way: _Way, rows: Sequence[Row], longest: Sequence[int], room: int, step_rows: int | None = None
    ) -> PromptRows:
        return PromptRows(
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
        """Return a row that has read a prompt's prefix, for token trees; None where prefixes are not shared."""
        way = self._checked_way()
        if isinstance(way, str):
            return None
        return Stem.of_one(self.lm, way.rules, self._prefix(way.rules, prompt, self.prefixes.of_one_batch()))

    def _row(self, rules: MaskRules, prompt: Encoded, read: BatchPrefixes, keep: bool = False) -> Row:
        kept = partial(read.keep_prompt, prompt.ids) if keep else None
        return Row(self._prefix(rules, prompt, read), prompt.ids[prompt.shared :], kept)

    def _prefix(self, rules: MaskRules, prompt: Encoded, read: BatchPrefixes) -> KeyValues | None:
        """Return the keys and values of a prompt's prefix: the part of all questions, then that of this question.

        `read` has those of the batch's other prompts.
        """
        known: KeyValues | None = None
        for tokens in prompt.prefixes:
            begun, ids = known, prompt.ids[:tokens]
            known = read.get(ids, partial(read_prefix, self.lm, rules, ids, begun, self.at_once))
        return known

    def _checked_way(self) -> _Way | str:
        """`_way`, for a model that is about to read a prompt.

        Raises:
            ModelError: it does not read prompts as decoders do.
        """
        way = self._way()
        if isinstance(way, str):
            self._repeats.get("steps", lambda: check_steps(self.lm, own_readings(self.lm)))
        return way

    def _way(self) -> _Way | str:
        """Return the way of sharing prefixes, or the reason for none; examined once."""
        with self._lock:
            if self._examined is None:
                with uncancelled():
                    self._examined = _examine(self.lm, self.fixed_shapes)
            return self._examined


def _examine(lm: CausalLM, fixed: bool) -> _Way | str:
    """Find the best way of sharing prefixes that gives the model's own logits; else the reason why there is none."""
    try:
        rules, readings = MaskRules.of(lm), own_readings(lm)
    except (NoExplicitMasks, ModelError) as reason:
        return str(reason)
    own = getattr(lm.config, "_attn_implementation", None) == "sdpa"  # where keys can carry an attention of ours
    plainest = _Way(rules, once=False, row_by_row=False)
    for way in [_Way(rules, own, own and not fixed), plainest]:
        wrong = _what_is_wrong(lm, way, readings)
        if wrong is None:
            return way
    return str(wrong)


def _what_is_wrong(lm: CausalLM, way: _Way, readings: Sequence[OwnReading]) -> str | None:
    try:
        gaps = _gaps(lm, way, readings)
    except UNREADABLE as error:
        return f"it cannot read with explicit masks: {type(error).__name__}: {error}"[:300]
    for gap, spread in gaps:
        if not gap <= tolerance(lm.dtype) * spread:
            return f"reading a shared prefix gave other logits than plain reading (by {gap:.2g} of {spread:.2g})"
    return None


@torch.inference_mode()
def _gaps(lm: CausalLM, way: _Way, readings: Sequence[OwnReading]) -> list[tuple[float, float]]:
    """Measure how far logits are from a model's own, and the spread of these: for a prompt by itself, and two rows.

    One row begins with a prefix that was read in two parts; the other has none, and is read in two parts.
    """
    one, other = readings
    prefix = read_prefix(lm, way.rules, one.ids[:6], read_prefix(lm, way.rules, one.ids[:4], None, 8), 8)
    rows = [Row(prefix, tuple(one.ids[6:])), Row(None, tuple(other.ids))]
    batch = PromptRows(
        lm, way.rules, rows, longest=[16, 16], room=2, at_once=6, once=way.once, row_by_row=way.row_by_row
    )
    opened = batch.open([one.ids[:2]]).logits
    steps = torch.stack([opened, batch.append([one.following, other.following])])
    alone = SinglePrompt(lm, way.rules, Row(None, tuple(one.ids)), room=1, at_once=1000)
    by_itself = torch.cat([alone.open().logits, alone.append([one.following])])
    return [one.gap(by_itself), one.gap(steps[:, 0]), other.gap(steps[:, 1])]
