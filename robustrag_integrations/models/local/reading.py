"""Reading a model's prompts: with shared prefixes where its architecture allows it, each by itself elsewhere.

The prefix of all questions' prompts is read once and kept (`PrefixStore`), then the one of this question's prompts;
behind these, each prompt reads its own passage by itself. All rows take decoding steps together, in shapes that no
passage decides and in a number of rows that the isolation probe found exact.

A model is examined before its first prompt. It reads two short prompts by its own code; then in the ways of sharing
that its configuration allows, the best first, and the first that gives the same logits is taken. Where there is none,
each prompt is a batch of its own, if the model gives the same logits from its cache; else it is refused: some
architectures keep no cache of the library's kind, or count positions in a way of their own, and others let a token see
those after it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.batches import (
    STRING_TOKENS,
    Batch,
    PlainPrompt,
    PromptRows,
    Row,
    SeparateBatches,
    SinglePrompt,
    read_prefix,
)
from robustrag_integrations.models.local.cache import KeyValues, Pair
from robustrag_integrations.models.local.cancellation import uncancelled
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.isolation import Isolation, IsolationProbe, ModelMemo, Text
from robustrag_integrations.models.local.language_model import CausalLM, MaskRules, NoExplicitMasks, why_coupled
from robustrag_integrations.models.local.token_trees import Stem

Weights = tuple[object, ...]  # a model's fingerprint
# The errors of a model that cannot be read in some way.
_UNREADABLE = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_TOLERANCE = 1e-3  # of the spread of the logits
_HALF_TOLERANCE = 0.1
_ERROR = 0.1  # of the spread: noise is smaller, even for logits that cancel
_LENGTHS = (9, 12)  # of two prompts, in tokens
_LONG = 160  # of a long one: some layers join tokens by fours, others by 128
_INSTEAD = "Serve it, and ask it with OpenAIModel, or pass a function to CallableModel"


class PrefixStore:
    """The most recently used prefixes of one model, and the last prompts in the room that these leave.

    Safe to use from several threads. All of it is dropped as soon as the model's weights change.

    Args:
        lm: the model.
        limit: bytes of keys and values to keep; 0 keeps none.
    """

    def __init__(self, lm: CausalLM, limit: int) -> None:
        self._lm, self.limit = lm, limit
        self._prefixes: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._prompts: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._weights: Weights = ()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values that are kept."""
        with self._lock:
            return self._size()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._prefixes.clear()
            self._prompts.clear()

    def of_one_batch(self) -> BatchPrefixes:
        """Return the prefixes of prompts that are read together, with the weights as they are now."""
        weights = self._lm.fingerprint()
        if weights != self._weights:
            self.clear()
            self._weights = weights
        return BatchPrefixes(self, weights)

    def find(self, tokens: tuple[int, ...], weights: Weights, *, whole: bool = False) -> KeyValues | None:
        """Return the keys and values that these weights made of a prefix, or of a whole prompt, if they were kept."""
        kept = self._prompts if whole else self._prefixes
        with self._lock:
            if weights != self._weights or tokens not in kept:
                return None
            kept.move_to_end(tokens)
            return kept[tokens]

    def keep(self, tokens: tuple[int, ...], read: KeyValues, weights: Weights, *, whole: bool = False) -> None:
        """Keep what these weights made of a prefix, or of a whole prompt, unless they changed since.

        What was used longest ago is dropped for it, prompts first.
        """
        kept, unchanged = self._prompts if whole else self._prefixes, weights == self._lm.fingerprint()
        with self._lock:
            if unchanged and weights == self._weights:
                kept[tokens] = read
                kept.move_to_end(tokens)
            size = self._size()
            while size > self.limit:
                size -= (self._prompts or self._prefixes).popitem(last=False)[1].nbytes

    def _size(self) -> int:
        return sum(kept.nbytes for kept in (*self._prefixes.values(), *self._prompts.values()))


class BatchPrefixes:
    """The prefixes of one batch's prompts, each read once; those that other weights had a part in are not kept.

    Args:
        store: the prefixes that are kept.
        weights: those that the batch began with.
    """

    def __init__(self, store: PrefixStore, weights: Weights) -> None:
        self._store, self._weights = store, weights
        self._read: dict[tuple[int, ...], KeyValues] = {}

    def get(self, tokens: tuple[int, ...], compute: Callable[[], KeyValues]) -> KeyValues:
        """Return the keys and values of these tokens; `compute` may start from those of this batch."""
        if tokens not in self._read:
            known = self._store.find(tokens, self._weights)
            if known is None:
                known = compute()
                self._store.keep(tokens, known, self._weights)
            self._read[tokens] = known
        return self._read[tokens]

    def prompt(self, tokens: tuple[int, ...]) -> KeyValues | None:
        """Return the keys and values of a whole prompt, if they were kept."""
        return self._store.find(tokens, self._weights, whole=True)

    def keep_prompt(self, tokens: tuple[int, ...], read: KeyValues) -> None:
        """Keep a copy of the keys and values of a whole prompt."""
        if read.nbytes <= self._store.limit:
            copied = KeyValues(tuple((keys.clone(), values.clone()) for keys, values in read.layers), read.tokens)
            self._store.keep(tokens, copied, self._weights, whole=True)


@dataclass(frozen=True)
class _Way:
    """A way of sharing prefixes.

    Attributes:
        rules: the model's attention masks.
        row_by_row: True if decoding steps compute each row's attention by itself, over the columns that it has;
            otherwise for all rows, over as many columns as the settings allow.
    """

    rules: MaskRules
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
            """Lay out the probe's batch, in the shapes of the actual one."""
            trial = [Row(None, text) for text in texts]
            return self._rows(way, trial, [max(laid.longest, row.tokens) for row in trial], room, step_rows)

        def read_text(text: Text) -> Sequence[Pair]:
            return read_prefix(self.lm, way.rules, text, None, self.at_once).layers

        isolation = self.probe.steps(lay, read_text, count, laid.step_columns, laid.longest)
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
            self._repeats.get("steps", lambda: _check_steps(self.lm, _own_readings(self.lm)))
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
        rules, readings = MaskRules.of(lm), _own_readings(lm)
    except (NoExplicitMasks, ModelError) as reason:
        return str(reason)
    own = getattr(lm.config, "_attn_implementation", None) == "sdpa"  # where keys can carry an attention of ours
    for row_by_row in dict.fromkeys((own and not fixed, False)):
        way = _Way(rules, row_by_row)
        wrong = _what_is_wrong(lm, way, readings)
        if wrong is None:
            return way
    return str(wrong)


def _what_is_wrong(lm: CausalLM, way: _Way, readings: Sequence[_OwnReading]) -> str | None:
    try:
        gaps = _gaps(lm, way, readings)
    except _UNREADABLE as error:
        return f"it cannot read with explicit masks: {type(error).__name__}: {error}"[:300]
    for gap, spread in gaps:
        if not gap <= _tolerance(lm.dtype) * spread:
            return f"reading a shared prefix gave other logits than plain reading (by {gap:.2g} of {spread:.2g})"
    return None


@torch.inference_mode()
def _gaps(lm: CausalLM, way: _Way, readings: Sequence[_OwnReading]) -> list[tuple[float, float]]:
    """Measure how far logits are from a model's own, and the spread of these: for a prompt by itself, and two rows.

    One row begins with a prefix that was read in two parts; the other has none, and is read in two parts.
    """
    one, other = readings
    prefix = read_prefix(lm, way.rules, one.ids[:6], read_prefix(lm, way.rules, one.ids[:4], None, 8), 8)
    rows = [Row(prefix, tuple(one.ids[6:])), Row(None, tuple(other.ids))]
    batch = PromptRows(lm, way.rules, rows, longest=[16, 16], room=2, at_once=6, row_by_row=way.row_by_row)
    opened = batch.open([one.ids[:2]]).logits
    steps = torch.stack([opened, batch.append([one.following, other.following])])
    alone = SinglePrompt(lm, way.rules, Row(None, tuple(one.ids)), room=1, at_once=1000)
    by_itself = torch.cat([alone.open().logits, alone.append([one.following])])
    return [one.gap(by_itself), one.gap(steps[:, 0]), other.gap(steps[:, 1])]


@dataclass(frozen=True)
class _OwnReading:
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


def _tolerance(dtype: torch.dtype) -> float:
    """Return the tolerated distance between two computations of logits in a precision, as a share of their spread."""
    return _HALF_TOLERANCE if dtype in (torch.bfloat16, torch.float16) else _TOLERANCE


@torch.inference_mode()
def _own_readings(lm: CausalLM) -> list[_OwnReading]:
    """Read two short prompts that begin alike by the model's own code.

    Raises:
        ModelError: a token sees those after it, or the model cannot be read like a decoder.
    """
    *tokens, following = _tokens(lm, sum(_LENGTHS) + 1)
    try:
        whole = [_logits(lm, [*tokens[:length], following]) for length in _LENGTHS]
        ahead, spread = _seen_ahead(lm, [*tokens[: _LENGTHS[-1]], following], whole[-1])
    except _UNREADABLE as error:
        raise _unreadable(lm, error) from error
    if not ahead <= _tolerance(lm.dtype) * spread:
        raise ModelError(
            f"in {type(lm.model).__name__} a token sees those after it (logits differ by {ahead:.2g} of {spread:.2g}): "
            "it is an encoder, and writes no answers. Choose a decoder-only model; one that was trained as a decoder "
            "has is_decoder=True in its configuration"
        )
    return [
        _OwnReading(tokens[:length], following, logits[-2:]) for length, logits in zip(_LENGTHS, whole, strict=True)
    ]


@torch.inference_mode()
def _check_steps(lm: CausalLM, readings: list[_OwnReading]) -> bool:
    """Compare a token behind a prompt in the cache with the model's own reading of the whole.

    Returns:
        True if the logits are the same bits when they are computed again.

    Raises:
        ModelError: the two differ by more than noise.
    """
    try:
        readings = [*readings, _long_reading(lm)]
        first, again = ([_steps(lm, reading) for reading in readings] for _ in range(2))
    except _UNREADABLE as error:
        raise _unreadable(lm, error) from error
    for reading, steps in zip(readings, first, strict=True):
        gap, spread = reading.gap(steps)
        if not gap <= _ERROR * spread:
            raise ModelError(
                f"{type(lm.model).__name__} reads a token behind its cache otherwise than in one pass (logits differ "
                f"by {gap:.2g} of {spread:.2g}): its answers would be wrong. {_INSTEAD}"
            )
    return all(map(torch.equal, first, again))


def _long_reading(lm: CausalLM) -> _OwnReading:
    most = getattr(lm.config, "max_position_embeddings", None) or 2 * _LONG
    *ids, following = _tokens(lm, min(_LONG, most // 2) + 1)
    return _OwnReading(ids, following, _logits(lm, [*ids, following])[-2:])


def _steps(lm: CausalLM, reading: _OwnReading) -> torch.Tensor:
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
