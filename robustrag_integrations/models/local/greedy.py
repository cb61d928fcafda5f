"""Greedy answers: many prompts in one batch, or one prompt token by token, from drafts where those are certain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from robustrag_integrations.models.base import TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.alone import Alone
from robustrag_integrations.models.local.batch import Steps
from robustrag_integrations.models.local.draft_shapes import MOST_NODES, has_same_bits
from robustrag_integrations.models.local.drafted_row import DraftedRow
from robustrag_integrations.models.local.drafted_rows import answered, begun_with, noise_ahead
from robustrag_integrations.models.local.drafted_rows import measured_noise as noise_of_rows
from robustrag_integrations.models.local.drafts import (
    InDoubt,
    clear_leads,
    drafted_tokens,
    exact_tokens,
    lead_needed,
    measured_noise,
)
from robustrag_integrations.models.local.encoding import Encoded, Ways
from robustrag_integrations.models.local.giving_up import stop_if_given_up
from robustrag_integrations.models.local.guesses import Guesses
from robustrag_integrations.models.local.known_steps import read_known
from robustrag_integrations.models.local.packing import known_noise
from robustrag_integrations.models.local.reading import PromptReader
from robustrag_integrations.models.local.shared import MOST_OF_A_ROW, SharedBatch
from robustrag_integrations.models.local.step_sharing import StepSharing, room_for
from robustrag_integrations.models.local.trie import TokenTrie
from robustrag_integrations.models.noise import LEAST_NOISE
from robustrag_integrations.replies.reply import Ending, FinishReason, Piece

Written = tuple[str, FinishReason]  # an answer, and why it is over
Watch = Callable[[torch.Tensor], None]  # sees the [rows, V] logits of every step


@dataclass(frozen=True)
class GreedyWriter:
    """Writes answers with the most probable token at each step.

    Attributes:
        reader: lays out prompts.
        codec: tokens to text.
        stop: strings that end an answer.
        max_new_tokens: the longest answer.
        sharing: takes decoding steps together with those of other questions; None: each batch takes its own.
    """

    reader: PromptReader
    codec: TokenCodec
    stop: tuple[str, ...]
    max_new_tokens: int
    sharing: StepSharing | None = None

    def together(
        self,
        prompts: Sequence[Encoded],
        longest: Sequence[int],
        watch: Watch | None = None,
        drafts: Sequence[Sequence[int]] = (),
        likely: Sequence[Ways] = (),
    ) -> list[Written]:
        """Answer all prompts as one batch, until the last answer is complete; a complete one stays in the batch.

        Args:
            prompts: what to answer.
            longest: per prompt, how many tokens it could have had, whatever its passage.
            watch: sees the logits of every step.
            drafts: tokens of answers that may come from any of them.
            likely: per prompt, those of the draft that is the likely one, as ways to say it; none where no draft is.

        Returns:
            Per prompt its answer, and why it is over.
        """
        batch, doubt = self._batch(prompts, longest)
        if likely and watch is None and isinstance(batch, SharedBatch):
            lead = self._lead_ahead(batch, doubt, prompts, longest)
            if lead is not None:
                if (found := self._ahead(batch, lead, prompts, drafts, likely)) is not None:
                    return found
                batch, doubt = self._batch(prompts, longest)  # no steps are taken behind prompts of other shapes
        return self._written(batch, doubt, prompts, longest, watch, drafts)

    def _lead_ahead(
        self, batch: SharedBatch, doubt: float, prompts: Sequence[Encoded], longest: Sequence[int]
    ) -> float | None:
        """The lead with which a token stands where drafts are read together with their prompts; None for not now."""
        if batch.step_shape or not known_noise(self.reader.lm):
            return None

        def measure() -> float:
            plain, ahead = self._batch(prompts, longest)[0], self._batch(prompts, longest)[0]
            if not isinstance(plain, SharedBatch) or not isinstance(ahead, SharedBatch):
                return math.inf
            return noise_ahead(plain, ahead, self.max_new_tokens)

        lead = lead_needed(self.reader.ahead_noise.get((), measure))
        return None if lead is None or not self.reader.ahead_drafts.is_due() else max(lead, 2 * doubt)

    def _ahead(
        self,
        batch: SharedBatch,
        lead: float,
        prompts: Sequence[Encoded],
        drafts: Sequence[Sequence[int]],
        likely: Sequence[Ways],
    ) -> list[Written] | None:
        """`_from_drafts` with the likely drafts read together with the prompts; the batch is of no use elsewhere."""
        tries, most = self.reader.ahead_drafts, min(MOST_OF_A_ROW, self.max_new_tokens - 1)
        behind = [tries.way_of(ways)[:most] for ways in likely]
        logits = batch.open_ahead(behind)
        begun = None if logits is None else begun_with(logits, behind, lead)
        found = None if begun is None else self._completed(batch, begun, prompts, drafts, lead)
        right = sum(len(tokens) > len(draft) for tokens, draft in zip(begun or (), behind, strict=False))
        tries.note(found is not None and 2 * right >= len(prompts))
        tries.said(begun or (), likely)
        return found

    def _written(
        self,
        batch: Steps,
        doubt: float,
        prompts: Sequence[Encoded],
        longest: Sequence[int],
        watch: Watch | None = None,
        drafts: Sequence[Sequence[int]] = (),
    ) -> list[Written]:
        """`together` in this batch, whose logits may be off by `doubt`, as a share of the largest."""
        texts = [IncrementalDetokenizer(self.codec, self.stop) for _ in prompts]
        done, clear = [False] * len(texts), [True] * len(texts)
        logits = batch.open().logits
        if drafts and watch is None and isinstance(batch, SharedBatch):
            found = self._from_drafts(batch, logits, doubt, prompts, drafts)
            if found is not None:
                return found
        for step in range(self.max_new_tokens):
            if watch is not None:
                watch(logits)
            tokens = logits.argmax(-1).tolist()
            leads = clear_leads(logits, 2 * doubt) if doubt else clear
            for row, token in enumerate(tokens):
                if not done[row]:
                    clear[row] = clear[row] and leads[row]
                    done[row] = not clear[row] or self._add(texts[row], token)
            if all(done) or step == self.max_new_tokens - 1:
                break
            stop_if_given_up()
            logits = batch.append(tokens)
        for text in texts:
            text.finish()
        return [
            (text.shown, text.finish_reason) if sure else self._again(prompt, most)
            for text, sure, prompt, most in zip(texts, clear, prompts, longest, strict=True)
        ]

    def _from_drafts(
        self,
        batch: SharedBatch,
        logits: torch.Tensor,
        doubt: float,
        prompts: Sequence[Encoded],
        drafts: Sequence[Sequence[int]],
    ) -> list[Written] | None:
        """All answers, where drafts have each to its end and it is clear that steps would say the same."""
        if batch.step_shape or not known_noise(self.reader.lm) or not all(clear_leads(logits, 2 * doubt)):
            return None
        noise = self.reader.rows_noise.get((), lambda: noise_of_rows(batch, logits, self.max_new_tokens))
        if (lead := lead_needed(noise)) is None or not self.reader.rows_drafts.is_due():
            return None
        begun = [[token] for token in logits.argmax(-1).tolist()]
        found = self._completed(batch, begun, prompts, drafts, max(lead, 2 * doubt))
        self.reader.rows_drafts.note(found is not None)
        return found

    def _completed(
        self,
        batch: SharedBatch,
        begun: Sequence[Sequence[int]],
        prompts: Sequence[Encoded],
        drafts: Sequence[Sequence[int]],
        lead: float,
    ) -> list[Written] | None:
        """All answers, of which some tokens are known, where drafts have each to its end with this lead."""
        texts = [IncrementalDetokenizer(self.codec, self.stop) for _ in prompts]
        found = answered(
            batch,
            begun,
            [Guesses(drafts, prompt.ids[prompt.shared :]) for prompt in prompts],
            lambda row, token: self._add(texts[row], token),
            self.max_new_tokens,
            lead,
        )
        if not found:
            return None
        for text in texts:
            text.finish()
        return [(text.shown, text.finish_reason) for text in texts]

    def _again(self, prompt: Encoded, most: int) -> Written:
        """The answer to one prompt in steps of its own, whatever else is going on."""
        batch = self.reader.alone(prompt, self.max_new_tokens)
        return self._written(batch, 0.0, [prompt], [most])[0]

    def _add(self, text: IncrementalDetokenizer, token: int) -> bool:
        """Add a token to an answer; gives whether the answer is complete by that."""
        text.ended = self.codec.is_end(token)
        if not text.ended:
            text.add(token)
        return text.ended or text.stopped

    def after(self, prompt: Encoded, tokens: Sequence[int]) -> torch.Tensor:
        """[1 + tokens, V] logits from which an answer's next token is chosen after a prompt and after each of these.

        Args:
            prompt: a prompt that is answered by itself.
            tokens: that may follow it.
        """
        batch = self._plain(prompt)
        steps = [batch.open().logits]
        if len(tokens) > 1 and isinstance(batch, Alone) and self.reader.takes_known_steps(batch, tokens):
            return torch.cat([*steps, read_known(self.reader.lm, batch, tokens)])
        for token in tokens:
            stop_if_given_up()
            steps.append(batch.append([token]))
        return torch.cat(steps)

    def _batch(self, prompts: Sequence[Encoded], longest: Sequence[int]) -> tuple[Steps, float]:
        """Where to write answers, and how far a logit may be from that of its prompt alone, as a share of the largest.

        Prompts that move each other's numbers by more than float noise are read apart.
        """
        if len(prompts) == 1:
            return self._plain(prompts[0]), 0.0
        with room_for(self.sharing, len(prompts)) as join:
            batch, isolation = self.reader.together(prompts, longest, self.max_new_tokens)
            if isolation.bounded:
                least = LEAST_NOISE if known_noise(self.reader.lm) else 0.0  # what the few rows may not have shown
                return join(batch) if isolation.exact else batch, max(least, isolation.logit_noise)
        return self.reader.apart(prompts, self.max_new_tokens), 0.0

    def pieces(self, prompt: Encoded, drafts: Sequence[Sequence[int]]) -> Iterator[Piece]:
        """The answer to one prompt in pieces, each given before the token after it is computed; then how it ended.

        Args:
            prompt: what to answer.
            drafts: tokens of answers that may come.
        """
        text = IncrementalDetokenizer(self.codec, self.stop)
        for token in islice(self._tokens(prompt, drafts), self.max_new_tokens):
            if self.codec.is_end(token):
                text.ended = True
                break
            if piece := text.add(token):
                yield piece
            if text.stopped:
                break
            stop_if_given_up()
        if piece := text.finish():
            yield piece
        yield Ending(finish=text.finish_reason)

    def _tokens(self, prompt: Encoded, drafts: Sequence[Sequence[int]]) -> Iterator[int]:
        """The greedy tokens after a prompt, without end."""
        given = 0
        if drafts and (row := self._exact(prompt)) is not None:
            yield from exact_tokens(row, self._trie(drafts))
        lead = self._lead(prompt) if drafts else None
        batch = self._drafted(prompt) if lead is not None else None
        if lead is not None and batch is not None:
            try:
                for token in drafted_tokens(batch, self._trie(drafts), lead):
                    yield token
                    given += 1
            except InDoubt:
                pass
        yield from islice(_plain_tokens(self._plain(prompt)), given, None)

    def _lead(self, prompt: Encoded) -> float | None:
        """The lead with which a token of a draft stands; measured on this prompt if it is the model's first."""
        if not known_noise(self.reader.lm):
            return None
        return lead_needed(self.reader.draft_noise.get((), lambda: self._noise(prompt)))

    def _noise(self, prompt: Encoded) -> float:
        drafted = self._drafted(prompt)
        return math.inf if drafted is None else measured_noise(self._plain(prompt), drafted, self.max_new_tokens)

    def _drafted(self, prompt: Encoded) -> Alone | None:
        """A batch that has room for drafts; None where the model is read the plain way."""
        batch = self.reader.alone(prompt, MOST_NODES + self.max_new_tokens)
        return batch if isinstance(batch, Alone) else None

    def _exact(self, prompt: Encoded) -> DraftedRow | None:
        """A prompt whose drafts have the bits of plain steps; tried out on this prompt if it is the model's first."""

        def try_out() -> bool:
            plain, drafted = self._stepping(prompt), self._stepping(prompt)
            if plain is None or drafted is None:
                return False
            return has_same_bits(plain, drafted, self.reader.lone_steps(), self.max_new_tokens)

        return self._stepping(prompt) if self.reader.drafts_exact.get((), try_out) else None

    def _stepping(self, prompt: Encoded) -> DraftedRow | None:
        """A prompt whose steps have rows for drafts; None where steps of one prompt have one row."""
        return None if self.sharing else self.reader.drafted(prompt, self.max_new_tokens)

    def _plain(self, prompt: Encoded) -> Steps:
        """One prompt, decoded by itself: the same with drafts and without."""
        if (row := self._stepping(prompt)) is not None:
            return row
        with room_for(self.sharing, 1) as join:
            return join(self.reader.alone(prompt, self.max_new_tokens))

    def _trie(self, drafts: Sequence[Sequence[int]]) -> TokenTrie:
        trie = TokenTrie()
        for tokens in drafts:
            trie.add(tokens[: self.max_new_tokens - 1], MOST_NODES)
        return trie


def _plain_tokens(batch: Steps) -> Iterator[int]:
    """The greedy tokens of a batch of one row, without end."""
    logits = batch.open().logits
    while True:
        yield (token := int(logits.argmax(-1)[0]))
        logits = batch.append([token])
