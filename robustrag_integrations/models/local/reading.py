"""Reading a model's prompts: with shared prefixes where its architecture allows it, each by itself elsewhere.

The prefix of all questions' prompts is read once and kept (`PrefixStore`), then the one of this question's prompts;
behind these, each prompt reads its own passage by itself.

A model is examined before its first prompt: it reads two short prompts by its own code, then with shared prefixes,
which must give the same logits. Where they do not, each prompt is a batch of its own, if the model gives the same
logits from its cache; else it is refused, as are encoders and models that keep another kind of cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.base import tell
from robustrag_integrations.models.local.batches import (
    Batch,
    PlainPrompt,
    PromptRows,
    SeparateBatches,
    SinglePrompt,
)
from robustrag_integrations.models.local.cache import KeyValues
from robustrag_integrations.models.local.cancellation import uncancelled
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.isolation import Isolation, ModelMemo, probe
from robustrag_integrations.models.local.language_model import CausalLM, MaskRules, NoExplicitMasks

Tokens = tuple[int, ...]
Weights = tuple[object, ...]  # a model's fingerprint
# The errors of a model that cannot be read in some way.
_UNREADABLE = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_TILE = 64  # the columns that all rows attend to are a multiple of this, so that there are few shapes
_TOLERANCE = 1e-3  # of the spread of the logits
_HALF_TOLERANCE = 0.1
_ERROR = 0.1  # of the spread: noise is smaller, even for logits that cancel
_LENGTHS = (9, 12)  # of two prompts, in tokens
_LONG = 160  # of a long one: some layers join tokens by fours, others by 128


class PrefixStore:
    """The most recently used prefixes of one model: `limit` bytes.

    What is kept goes with the weights that made it. Safe to use from several threads.
    """

    def __init__(self, lm: CausalLM, limit: int) -> None:
        self._lm, self._limit = lm, limit
        self._prefixes: OrderedDict[tuple[Weights, Tokens], KeyValues] = OrderedDict()
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._prefixes.clear()

    def get(self, tokens: Tokens, weights: Weights, read: Callable[[], KeyValues]) -> KeyValues:
        """Return what these weights make of a prefix, read if need be; kept unless the weights have changed since."""
        with self._lock:
            if (weights, tokens) in self._prefixes:
                self._prefixes.move_to_end((weights, tokens))
                return self._prefixes[weights, tokens]
        made = read()
        if made.nbytes <= self._limit and weights == self._lm.fingerprint():
            with self._lock:
                self._prefixes[weights, tokens] = made
                while self.nbytes > self._limit:
                    self._prefixes.popitem(last=False)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values that are kept."""
        return sum(kept.nbytes for kept in self._prefixes.values())


class PromptReader:
    """Turns encoded prompts into a batch, reading `at_once` tokens in one forward pass at most."""

    def __init__(self, lm: CausalLM, *, share: bool, keep_bytes: int, at_once: int) -> None:
        self.lm, self._at_once = lm, at_once
        self.prefixes = PrefixStore(lm, keep_bytes)
        self._probes = ModelMemo[Isolation](lm)
        self._examined: MaskRules | str | None = None if share else "switched off"
        self._repeats = ModelMemo[bool](lm)  # whether prompts that share nothing give the same numbers again
        self._lock = threading.Lock()

    @property
    def probed(self) -> list[Isolation]:
        """The isolation probe's results so far, by rows."""
        return sorted(set(self._probes.values), key=lambda result: result.rows)

    @property
    def is_repeatable(self) -> bool:
        """True unless a prompt was seen to give other numbers when it is read again."""
        return all(self._repeats.values) and all(result.repeatable for result in self.probed)

    def forget(self) -> None:
        """Drop the kept prefixes and all measurements."""
        self.lm.forget()
        self.prefixes.clear()
        self._probes.clear()
        self._repeats.clear()

    def alone(self, prompt: Encoded, room: int) -> SinglePrompt | PlainPrompt:
        """Lay out one prompt, at its own length, with room for so many tokens."""
        rules = self._checked_rules()
        if isinstance(rules, str):
            return PlainPrompt(self.lm, prompt.ids)
        return self._single(rules, prompt, room, self.lm.fingerprint(), {})

    def together(self, prompts: Sequence[Encoded], longest: Sequence[int], room: int) -> tuple[Batch, Isolation]:
        """Lay out prompts as rows of one batch, or in batches of one where no other way is exact.

        Args:
            prompts: the prompts to read.
            longest: per prompt, the most tokens that it could have had, whatever its passage; shapes follow from these.
            room: number of tokens that may come after the prompts.
        """
        rules, count = self._checked_rules(), len(prompts)
        if isinstance(rules, str):
            repeatable = all(self._repeats.values)
            isolation = Isolation(count, count, repeatable, repeatable=repeatable)
        else:
            columns = -(-(max(longest) + room) // _TILE) * _TILE
            measure = partial(probe, self.lm, rules, count, columns, max(longest))
            isolation = self._probes.get((count, columns), measure)
            if isolation.exact:
                weights, known = self.lm.fingerprint(), dict[Tokens, KeyValues]()
                read = {p: self._single(rules, p, room, weights, known) for p in dict.fromkeys(prompts)}
                rows = [read[p] for p in prompts]
                return PromptRows(self.lm, rules, count, isolation.padded, columns, rows, tell), isolation
        return SeparateBatches([self.alone(prompt, room) for prompt in prompts]), isolation

    def _single(
        self, rules: MaskRules, prompt: Encoded, room: int, weights: Weights, known: dict[Tokens, KeyValues]
    ) -> SinglePrompt:
        """Lay out a prompt behind its prefix: the part of all questions, then that of this one."""
        prefix: KeyValues | None = None
        for tokens in prompt.prefixes:
            ids = prompt.ids[:tokens]
            read = partial(read_prefix, self.lm, rules, ids, prefix, self._at_once)
            prefix = known[ids] = known.get(ids) or self.prefixes.get(ids, weights, read)
        rest = prompt.ids[prompt.shared :]
        return SinglePrompt(self.lm, rules, prefix, rest, room=room, at_once=self._at_once)

    def _checked_rules(self) -> MaskRules | str:
        """`rules` of a model that is about to read a prompt; one that does not read as decoders do is refused."""
        rules = self.rules()
        if isinstance(rules, str):
            self._repeats.get("steps", lambda: _check_steps(self.lm))
        return rules

    def rules(self) -> MaskRules | str:
        """Return the masks with which prefixes are shared, or the reason why they are not; examined once."""
        with self._lock:
            if self._examined is None:
                with uncancelled():
                    self._examined = _examine(self.lm)
            return self._examined


def read_prefix(lm: CausalLM, rules: MaskRules, tokens: Tokens, known: KeyValues | None, at_once: int) -> KeyValues:
    """Read a prefix behind its known beginning, and return the keys and values of the whole."""
    prompt = SinglePrompt(lm, rules, known, tokens[known.tokens if known else 0 :], at_once=at_once)
    prompt.open()
    return prompt.key_values()


@dataclass(frozen=True)
class _OwnReading:
    """A prompt and a token behind it, as the model's own code reads them in one pass."""

    ids: Tokens
    following: int
    logits: torch.Tensor  # [2, V] float32, behind the prompt, and behind that token

    @classmethod
    def of(cls, lm: CausalLM, length: int) -> _OwnReading:
        """Read a prompt of this length; prompts begin alike."""
        vocabulary = lm.model.get_input_embeddings().weight.shape[0]
        *ids, following = ((7 * i + 3) % vocabulary for i in range(length + 1))
        given = torch.tensor([[*ids, following]], device=lm.device)
        logits = lm.model(input_ids=given, attention_mask=torch.ones_like(given)).logits
        return cls(tuple(ids), following, logits[0, -2:].float())

    def gap(self, logits: torch.Tensor) -> float:
        """Return the largest distance of other logits [2, V], as a share of the spread; 0 if these are not finite."""
        if not self.logits.isfinite().all():
            return 0.0
        spread = self.logits.max() - self.logits.min()
        return float((logits - self.logits).abs().max() / spread.clamp(min=1e-30))


@torch.inference_mode()
def _examine(lm: CausalLM) -> MaskRules | str:
    """Return the masks with which shared prefixes give the model's own logits; else the reason why there are none."""
    try:
        rules = MaskRules.of(lm)
        gaps = _shared_gaps(lm, rules, *(_OwnReading.of(lm, length) for length in _LENGTHS))
    except NoExplicitMasks as reason:
        return str(reason)
    except _UNREADABLE as error:
        return f"it cannot read with explicit masks: {type(error).__name__}: {error}"[:300]
    tolerance = _HALF_TOLERANCE if lm.dtype in (torch.bfloat16, torch.float16) else _TOLERANCE
    if all(gap <= tolerance for gap in gaps):
        return rules
    return f"reading a shared prefix gave other logits than plain reading (by {max(gaps):.2g} of their spread)"


def _shared_gaps(lm: CausalLM, rules: MaskRules, one: _OwnReading, other: _OwnReading) -> list[float]:
    """Measure how far logits are from a model's own: for a prompt by itself, one behind a prefix, one read in parts."""
    prefix = read_prefix(lm, rules, one.ids[:6], read_prefix(lm, rules, one.ids[:4], None, 8), 8)
    prompts = [
        SinglePrompt(lm, rules, p, ids, room=2, at_once=6) for p, ids in ((prefix, one.ids[6:]), (None, other.ids))
    ]
    batch = PromptRows(lm, rules, 2, 2, 20, prompts)
    opened = batch.open([one.ids[:2]]).logits
    steps = torch.stack([opened, batch.append([one.following, other.following])])
    by_itself = _steps(SinglePrompt(lm, rules, None, one.ids, room=1, at_once=1000), one)
    return [one.gap(by_itself), one.gap(steps[:, 0]), other.gap(steps[:, 1])]


@torch.inference_mode()
def _check_steps(lm: CausalLM) -> bool:
    """Refuse a model whose reading of a token behind its cache differs by more than noise from reading the whole.

    Returns:
        True if the logits are the same bits when they are computed again.
    """
    instead = "Serve it, and ask it with OpenAIModel, or pass a function to CallableModel"
    window = getattr(lm.config, "max_position_embeddings", None) or 2 * _LONG
    try:
        readings = [_OwnReading.of(lm, length) for length in (*_LENGTHS, min(_LONG, window // 2))]
        first, again = ([_steps(PlainPrompt(lm, own.ids), own) for own in readings] for _ in range(2))
    except _UNREADABLE as error:
        raise ModelError(
            f"{type(lm.model).__name__} cannot be read as a decoder-only language model: {type(error).__name__}: "
            f"{str(error)[:300].rstrip('. ')}. {instead}"
        ) from error
    gaps = [own.gap(steps) for own, steps in zip(readings, first, strict=True)]
    if not all(gap <= _ERROR for gap in gaps):
        raise ModelError(
            f"{type(lm.model).__name__} reads a token behind its cache otherwise than in one pass (logits differ by "
            f"{max(gaps):.2g} of their spread), as encoders do: its answers would be wrong. {instead}"
        )
    return all(map(torch.equal, first, again))


def _steps(prompt: SinglePrompt | PlainPrompt, own: _OwnReading) -> torch.Tensor:
    return torch.cat([prompt.open().logits, prompt.append([own.following])])
