"""Many final prompts of one question, each answered as if it had been asked alone.

Keyword certification asks the same final question with many sets of keywords. The prompts share most of their tokens
and most of their answers. A trie holds their tokens once; known answers are drafts behind each prompt; and one forward
pass tells how every prompt is answered. Greedy decoding goes on from there, one token of every unfinished answer per
pass. A token stands only where its lead is far beyond the float noise that this brings, as measured in every tree on a
prompt that was asked alone. A prompt with a token in doubt is asked alone as well, up to that token; with a second one,
as a whole. So are all prompts where more than noise is measured. The responses are those of inference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import torch

from robustrag_integrations.models.base import FinalAnswers, Response, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.models.local.batch import in_parts
from robustrag_integrations.models.local.encoding import Encoded
from robustrag_integrations.models.local.giving_up import given_up_with_the_caller, stop_if_given_up
from robustrag_integrations.models.local.pack import Pack
from robustrag_integrations.models.local.packing import Stem, TokenTree
from robustrag_integrations.models.noise import noise_bound
from robustrag_integrations.prompts import Prompt

_DRAFTS = 2  # known answers that are tried behind every prompt
_AHEAD = 16  # tokens of a known answer that are tried at once
_LEAVES = 32  # prompts in one tree, at most
_NODES = 3072  # tokens in one tree that the prompts do not share, about; masks grow with the square
_LONGEST = 4096  # tokens of a prompt; longer ones are asked alone


class AskAlone(Protocol):
    """Inference itself: the response to one prompt. `watch` sees the [1, V] logits of every step."""

    def __call__(self, prompt: Prompt, watch: Callable[[torch.Tensor], None], /) -> Response:
        """Ask."""
        ...


@dataclass(frozen=True)
class FinalRules:
    """What turns tokens into a final answer, as at inference."""

    codec: TokenCodec
    stop: tuple[str, ...]
    max_new_tokens: int


@dataclass(frozen=True)
class _Anchor:
    """A prompt that was asked alone: its tokens, its answer's, and the logits [T, V] they were chosen from."""

    ids: tuple[int, ...]
    answer: tuple[int, ...]
    logits: torch.Tensor


@dataclass
class _Leaf:
    """An answer in the making."""

    prompt: Prompt
    encoded: Encoded
    text: IncrementalDetokenizer
    node: int = -1  # the node whose logits decide the next token
    taken: list[int] = field(default_factory=list)  # every token chosen, one that ends the text included
    finished: bool = False
    settled: bool = False  # whether inference itself said one of them
    in_doubt: bool = False  # whether the whole prompt has to be asked alone


class PackedFinals(FinalAnswers):
    """Answers final prompts in packs.

    Args:
        stem: what a tree of prompts grows on: one row that has read how a prompt begins; None where there is none.
        encode: a prompt's tokens as at inference.
        ask_alone: inference.
        after: [1 + T, V] logits from which inference chooses what follows a prompt and each of T tokens behind it.
        rules: what turns tokens into an answer.
    """

    def __init__(
        self,
        stem: Callable[[Encoded], Stem | None],
        encode: Callable[[Prompt], Encoded],
        ask_alone: AskAlone,
        after: Callable[[Prompt, Sequence[int]], torch.Tensor],
        rules: FinalRules,
    ) -> None:
        self._stem, self._encode, self._ask_alone, self._rules = stem, encode, ask_alone, rules
        self._after = after
        self._tree: TokenTree | None = None
        self._begun: tuple[int, ...] = ()  # tokens that the tree grows behind
        self._trunk: tuple[int, ...] = ()  # tokens of the nodes that the tree keeps
        self._anchor: _Anchor | None = None
        self._drafts: Counter[tuple[int, ...]] = Counter()
        self._trusted = True
        self._measured = 0.0
        self._counts = Counter[str]()

    @property
    def profile(self) -> dict[str, Any]:
        """How many prompts were answered how, and the noise of the logits, as a share of the largest one."""
        if not self._counts["packed"]:
            return {}
        return {
            "finals_packed": self._counts["packed"],
            "finals_alone": self._counts["alone"],
            "finals_settled": self._counts["settled"],
            "noise_measured": self._measured,
            "noise_bound": noise_bound(self._measured),
        }

    def answer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """One response per prompt, those of asking each alone."""
        responses: list[Response | None] = [None] * len(prompts)
        if self._anchor is None and prompts:
            responses[0] = self._alone(prompts[0])
        encoded = {i: self._encode(p) for i, p in enumerate(prompts) if responses[i] is None}
        left = {i: e for i, e in encoded.items() if len(e.ids) <= _LONGEST and self._begins_alike(e)}
        for part in _parts(left, self._rules.max_new_tokens):
            if self._trusted:
                packed = self._pack([(prompts[i], left[i]) for i in part])
                for i, response in zip(part, packed, strict=True):
                    responses[i] = response
        return [r if r is not None else self._alone(p) for r, p in zip(responses, prompts, strict=True)]

    async def aanswer(self, prompts: Sequence[Prompt]) -> list[Response]:
        """`answer` in a thread; cancelling it stops it at the next prompt or token."""
        return await given_up_with_the_caller(self.answer, prompts)

    def _alone(self, prompt: Prompt) -> Response:
        steps: list[torch.Tensor] = []
        response = self._ask_alone(prompt, steps.append)
        logits = torch.cat(steps)
        answer = tuple(map(int, logits.argmax(-1)))
        self._drafts[answer] += 1
        self._counts["alone"] += 1
        if self._anchor is None:
            encoded = self._encode(prompt)
            self._anchor = _Anchor(encoded.ids, answer, logits)
            self._trusted = len(encoded.ids) <= _LONGEST
            stem = self._stem(encoded) if self._trusted else None
            if stem is not None:
                self._tree, self._begun = TokenTree(stem), encoded.ids[: encoded.shared]
        return response

    def _begins_alike(self, encoded: Encoded) -> bool:
        """Whether the tree grows behind how this prompt begins."""
        return self._tree is not None and encoded.ids[: len(self._begun)] == self._begun != encoded.ids

    def _pack(self, asked: Sequence[tuple[Prompt, Encoded]]) -> list[Response | None]:
        """Responses in the order of the prompts; None where one has to be asked alone."""
        rules, anchor, tree, begun = self._rules, self._anchor, self._tree, len(self._begun)
        assert anchor is not None  # noqa: S101 - one is asked first
        assert tree is not None  # noqa: S101 - it began with that one
        trunk = _shared([ids[begun:-1] for ids in (*(e.ids for _, e in asked), anchor.ids)])
        tree.cut(len(_shared([trunk, self._trunk])))
        pack = Pack(tree, trunk)
        texts = [IncrementalDetokenizer(rules.codec, rules.stop) for _ in asked]
        leaves = [_Leaf(p, e, t) for (p, e), t in zip(asked, texts, strict=True)]
        answers = [answer for answer, _ in self._drafts.most_common()]
        for leaf in sorted(leaves, key=lambda leaf: leaf.encoded.ids):
            leaf.node = pack.path(leaf.encoded.ids[begun:])
            for draft in _drafts_after(answers, ()):
                pack.want(leaf.node, draft)
        checked = pack.want(pack.path(anchor.ids[begun:]), anchor.answer[:-1])
        self._trunk = trunk
        pack.read()
        self._measured = max(self._measured, pack.noise(checked, anchor.logits))
        noise = noise_bound(self._measured)
        self._trusted = noise is not None
        while self._trusted and any(not leaf.finished for leaf in leaves):
            stop_if_given_up()
            for leaf in leaves:
                self._advance(pack, leaf, 2 * (noise or 1.0))
            for leaf in leaves:
                if not leaf.finished:
                    leaf.node = _go_on(pack, leaf, answers)
            pack.read()
        tree.cut(len(self._trunk))
        return [self._response(leaf) if self._trusted else None for leaf in leaves]

    def _advance(self, pack: Pack, leaf: _Leaf, enough: float) -> None:
        """Take the tokens that are known and whose lead is enough; the first one that is in doubt, from inference."""
        while not leaf.finished:
            token, lead = pack.next[leaf.node]
            if not lead >= enough:  # not a number is not enough either
                said = self._said(leaf)
                if said is None:
                    leaf.finished = leaf.in_doubt = True
                    return
                token, leaf.settled = said, True
            leaf.taken.append(token)
            ended = self._rules.codec.is_end(token)
            if not ended:
                leaf.text.add(token)
            leaf.text.ended = ended
            leaf.finished = ended or leaf.text.stopped or len(leaf.taken) == self._rules.max_new_tokens
            following = pack.child(leaf.node, token)
            if following not in pack.next:
                return
            leaf.node = following

    def _said(self, leaf: _Leaf) -> int | None:
        """The next token as inference says it, in its own steps; None where the whole prompt is to be asked alone."""
        self._counts["doubted again"] += leaf.settled
        if leaf.settled or 2 * self._counts["doubted again"] > self._counts["settled"]:
            return None
        said: list[int] = self._after(leaf.prompt, leaf.taken).argmax(-1).tolist()
        self._counts["settled"] += 1
        if said[:-1] != leaf.taken:  # more than noise is at work
            self._trusted = False
            return None
        return said[-1]

    def _response(self, leaf: _Leaf) -> Response | None:
        if leaf.in_doubt or not leaf.finished:
            return None
        self._drafts[tuple(leaf.taken)] += 1
        self._counts["packed"] += 1
        leaf.text.finish()
        return Response(leaf.text.shown, truncated=leaf.encoded.truncated, finish=leaf.text.finish_reason)


def _drafts_after(answers: Sequence[tuple[int, ...]], taken: Sequence[int]) -> list[tuple[int, ...]]:
    """What may be said after these tokens of an answer, as far as it is known; the last token needs no reading."""
    known = (a[:-1][len(taken) :] for a in answers if a[: len(taken)] == tuple(taken))
    return [tokens[:_AHEAD] for tokens in islice(known, _DRAFTS)] or [()]


def _go_on(pack: Pack, leaf: _Leaf, answers: Sequence[tuple[int, ...]]) -> int:
    """Have the token just taken read, and what may follow; gives its node."""
    node = leaf.node
    for draft in _drafts_after(answers, leaf.taken):
        node = pack.want(leaf.node, (leaf.taken[-1], *draft))[1]
    return node


def _shared(sequences: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The longest beginning that all have."""
    first, last = min(sequences), max(sequences)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]


def _parts(prompts: Mapping[int, Encoded], max_new_tokens: int) -> Iterator[list[int]]:
    """Prompts that fit into one tree with their answers, in order."""
    trunk, numbers = len(_shared([e.ids for e in prompts.values()])) if prompts else 0, list(prompts)
    answer = max(_DRAFTS * _AHEAD, max_new_tokens)
    sizes = [len(encoded.ids) - trunk + answer for encoded in prompts.values()]
    for part in in_parts(sizes, _NODES, _LEAVES):
        yield [numbers[place] for place in part]
