"""Final prompts of one question, each answered as if it had been asked alone.

Keyword certification asks the same final question with many sets of keywords. The prompts share most of their tokens
and most of their answers. The first is asked alone. Then a trie holds the tokens of many prompts once, the known
answers stand behind each as candidates, and one forward pass tells which prompts say one of them. A prompt that says
none is asked alone, and its answer is a candidate from then on.

A token counts only where its lead is far beyond the float noise that this brings, as measured in every trie on the
prompt that was asked first; a prompt with a token in doubt is asked alone. So are all prompts where more than noise is
measured. The responses are those of inference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from robustrag_integrations.models.base import FinalAnswers, Response, noise_bound
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.cancellation import in_cancellable_thread, stop_if_cancelled
from robustrag_integrations.models.local.decoding import GreedyWriter, Watch
from robustrag_integrations.models.local.encoding import Encoded, common_length
from robustrag_integrations.models.local.token_trees import Stem, TokenTree, TokenTrie, clear_leads, logit_noise
from robustrag_integrations.prompts import Prompt

_CANDIDATES = 2  # known answers behind every prompt
_PROMPTS = 32  # in one trie, at most
_NODES = 3072  # tokens in one trie that the prompts do not share, roughly; masks grow with the square
_LONGEST = 4096  # tokens of a prompt; longer ones are asked alone
_PASSES = 2  # passes that a prompt takes part in before it is asked alone


@dataclass(frozen=True)
class _Anchor:
    """The prompt that was asked first: its tokens, its answer's, and the logits [T, V] they were chosen from.

    `tree` grows behind its first tokens, `begun`, which other prompts share.
    """

    ids: tuple[int, ...]
    answer: tuple[int, ...]
    logits: torch.Tensor
    begun: tuple[int, ...]
    tree: TokenTree


class PackedFinals(FinalAnswers):
    """Answers final prompts in tries.

    Args:
        stem: gives the row that a tree of prompts grows on, which has read a prompt's beginning; None if there is none.
        encode: gives a prompt's tokens as at inference.
        ask_alone: inference: gives the response to one prompt, and shows the [1, V] logits of every step.
        writer: writes the answers of inference.
    """

    def __init__(
        self,
        stem: Callable[[Encoded], Stem | None],
        encode: Callable[[Prompt], Encoded],
        ask_alone: Callable[[Prompt, Watch], Response],
        writer: GreedyWriter,
    ) -> None:
        self._stem, self._encode, self._ask_alone, self._writer = stem, encode, ask_alone, writer
        self._anchor: _Anchor | None = None
        self._answers: Counter[tuple[int, ...]] = Counter()
        self._trusted = True
        self._measured = 0.0
        self._counts = Counter[str]()

    @property
    def profile(self) -> dict[str, Any]:
        """The numbers of prompts answered in tries and alone, and the logits' noise as a share of the largest one."""
        if not self._counts["packed"]:
            return {}
        return {
            "finals_packed": self._counts["packed"],
            "finals_alone": self._counts["alone"],
            "noise_measured": self._measured,
            "noise_bound": noise_bound(self._measured),
        }

    def answer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """Return one response per prompt, as if each had been asked alone."""
        responses: dict[int, Response] = {}
        if prompts and not self._answers:
            responses[0] = self._alone(prompts[0])
        encoded = {i: self._encode(p) for i, p in enumerate(prompts) if i not in responses}
        queue, passes = [i for i, e in encoded.items() if self._fits(e)], Counter[int]()
        while queue and self._trusted:
            stop_if_cancelled()
            part = queue[: self._part([encoded[i] for i in queue])]
            packed = self._pack([encoded[i] for i in part])
            responses.update((i, said) for i, said in zip(part, packed, strict=True) if said is not None)
            passes.update(part)
            unsaid = [i for i in part if i not in responses]
            if unsaid:
                responses[unsaid[0]] = self._alone(prompts[unsaid[0]])
            queue = [*(i for i in unsaid[1:] if passes[i] < _PASSES), *queue[len(part) :]]
        return [responses[i] if i in responses else self._alone(p) for i, p in enumerate(prompts)]

    async def aanswer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """`answer` in a thread; cancelling it stops it at the next prompt or token."""
        return await in_cancellable_thread(self.answer, prompts)

    def _alone(self, prompt: Prompt) -> Response:
        steps: list[torch.Tensor] = []
        response = self._ask_alone(prompt, steps.append)
        logits = torch.cat(steps)
        answer = tuple(map(int, logits.argmax(-1)))
        if not self._answers:
            encoded = self._encode(prompt)
            stem = self._stem(encoded) if len(encoded.ids) <= _LONGEST else None
            if stem is not None:
                begun = encoded.ids[: encoded.shared]
                self._anchor = _Anchor(encoded.ids, answer, logits, begun, TokenTree(stem))
        self._answers[answer] += 1
        self._counts["alone"] += 1
        return response

    def _fits(self, encoded: Encoded) -> bool:
        """True if this prompt begins with the tokens that the tree grows behind."""
        if self._anchor is None or len(encoded.ids) > _LONGEST:
            return False
        return encoded.ids[: len(self._anchor.begun)] == self._anchor.begun != encoded.ids

    def _part(self, prompts: Sequence[Encoded]) -> int:
        """Return how many of the first prompts go into one trie, with their candidates; at least one."""
        trunk, nodes = common_length([e.ids for e in prompts]), 0
        for count, encoded in enumerate(prompts):
            nodes += len(encoded.ids) - trunk + _CANDIDATES * self._writer.max_new_tokens
            if count and (nodes > _NODES or count == _PROMPTS):
                return count
        return len(prompts)

    def _pack(self, prompts: Sequence[Encoded]) -> list[Response | None]:
        """Answer prompts in one trie; None where a prompt gives no known answer, or a token is in doubt."""
        anchor, trie = self._anchor, TokenTrie()
        assert anchor is not None  # noqa: S101 - prompts fit behind it
        candidates = [answer[:-1] for answer, _ in self._answers.most_common(_CANDIDATES)]
        own = [encoded.ids[len(anchor.begun) :] for encoded in prompts]
        first = anchor.ids[len(anchor.begun) :]
        wanted: dict[int, None] = {}
        for ids, answers in [*((ids, candidates) for ids in own), (first, [anchor.answer[:-1]])]:
            for answer in answers:
                trie.add((*ids, *answer))
                wanted.update((node, None) for node in trie.path((*ids, *answer))[len(ids) - 1 :])
        anchor.tree.clear()
        logits = anchor.tree.extend(trie.parents, trie.tokens, list(wanted))[0]
        row = {node: at for at, node in enumerate(wanted)}
        checked = [row[node] for node in trie.path((*first, *anchor.answer[:-1]))[len(first) - 1 :]]
        self._measured = max(self._measured, logit_noise(logits[checked], anchor.logits))
        noise = noise_bound(self._measured)
        self._trusted = noise is not None
        if noise is None:
            return [None] * len(prompts)
        best, clear = logits.argmax(-1).tolist(), clear_leads(logits, 2 * noise)
        choices = {node: best[at] if clear[at] else None for node, at in row.items()}
        return [self._said(e, trie, trie.path(ids)[-1], choices) for e, ids in zip(prompts, own, strict=True)]

    def _said(
        self, prompt: Encoded, trie: TokenTrie, node: int | None, choices: Mapping[int, int | None]
    ) -> Response | None:
        """Return the response to the prompt that ends in a node; None where the trie does not settle it."""
        text, taken = IncrementalDetokenizer(self._writer.codec, self._writer.stop), list[int]()
        while len(taken) < self._writer.max_new_tokens and not text.ended and not text.stopped:
            token = None if node is None else choices.get(node)
            if node is None or token is None:
                return None
            taken.append(token)
            text.take(token)
            node = trie.child(node, token)
        self._answers[tuple(taken)] += 1
        self._counts["packed"] += 1
        text.finish()
        return Response(text.shown, truncated=prompt.truncated, finish=text.finish_reason)
