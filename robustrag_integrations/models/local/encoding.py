"""Prompts to tokens: one BOS, hostile text as plain text, passages cut to a budget that no passage controls."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.local.chat_frames import ChatFrame, chat_frame
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

_LONE = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: JSON can spell them, tokenizers refuse them
_AFTER_A_HEAD = ("", "a", "A", " a", "\n", "\n\nA", "  ", "\t", "1", ".", ":", '"', "é", "中")
_REMEMBERED = 128  # texts around passages; the same for every source of a question
_WORTH_SHARING = 8  # tokens
_MUCH_TEXT = 2**15  # characters; above, it pays to tokenise texts in parallel
SEAM = 2  # tokens by which a text with a passage may exceed the sum of its parts, as token boundaries shift


@dataclass(frozen=True)
class Encoded:
    """Token ids of a prompt.

    `prefixes` are the lengths of the leading parts that no passage controls: the one of all questions, then (where the
    question stands before the passages) the one of all sources of this question.
    """

    ids: tuple[int, ...]
    truncated: bool = False  # its passages were cut to fit
    prefixes: tuple[int, ...] = ()

    @property
    def shared(self) -> int:
        """The number of leading ids that other prompts may share."""
        return self.prefixes[-1] if self.prefixes else 0


@dataclass(frozen=True)
class _Head:
    """The beginning of a text whose tokens stay the same whatever follows it."""

    ids: tuple[int, ...]
    chars: int


class PromptEncoder:
    """Encodes prompts for one tokenizer.

    With a chat template, the template is rendered once around a placeholder, so that it never sees a passage; its
    special tokens are parsed, while strings such as "</s>" inside a prompt stay plain text. Without one, the
    tokenizer's own leading special tokens (BOS) are put in front once.

    Args:
        tokenizer: a fast tokenizer. It is copied: other threads may use it meanwhile.
        chat: True if its chat template is used.
        template_options: variables of the template, besides those that turn reasoning off.
    """

    def __init__(self, tokenizer: Any, *, chat: bool, template_options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(
                f"{type(tokenizer).__name__} gives no character offsets; load a fast tokenizer "
                "(AutoTokenizer.from_pretrained does by default)"
            )
        own = copy.deepcopy(tokenizer)  # its reading of "</s>" as text is a setting, which others change
        self._head = lru_cache(maxsize=_REMEMBERED)(self._compute_head)
        self._frame = lru_cache(maxsize=_REMEMBERED)(self._compute_frame)
        self.frame = chat_frame(tokenizer, template_options) if chat else ChatFrame("", "")
        self._before, self._after = (
            tuple(own(text, add_special_tokens=False, split_special_tokens=False)["input_ids"]) if text else ()
            for text in (self.frame.before, self.frame.after)
        )
        if not chat:
            self._before = _leading_special(own)
        self._backend = own.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True

    def encode(self, prompt: Prompt, budget: int | None = None) -> Encoded:
        """Encode a prompt in at most `frame_length` + `budget` tokens: the end of a longer context is cut."""
        return self.encode_all([prompt], budget)[0]

    def encode_all(self, prompts: Sequence[Prompt], budget: int | None = None) -> list[Encoded]:
        """`encode` for several prompts at once."""
        found = self._read([p.text for p in prompts])
        return [self._encoded(p, read, budget) for p, read in zip(prompts, found, strict=True)]

    def frame_length(self, prompt: Prompt) -> int:
        """Return the number of a prompt's tokens without its context; the same for every source of a question."""
        return len(self._before) + len(self._frame(prompt.without_context())) + len(self._after) + SEAM

    def abstentions(self) -> tuple[tuple[int, ...], ...]:
        """Return the token sequences that spell the abstention string, with and without a leading space."""
        read = self._read([" " + ABSTENTION, ABSTENTION])
        return tuple(dict.fromkeys(tuple(tokens) for tokens in read if tokens))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about reasoning that could not be turned off."""
        return (f"the chat template {self.frame.reasons}",) if self.frame.reasons else ()

    def refuse_reasoning(self) -> None:
        """Refuse a model whose replies begin with reasoning, which decoding aggregation would take for the answer."""
        if self.frame.reasons is not None:
            raise ModelError(
                f"decoding aggregation would decode reasoning in place of an answer: the chat template "
                f"{self.frame.reasons}. Take keyword aggregation, another model, or chat=False for a base model"
            )

    def _encoded(self, prompt: Prompt, read: list[int], budget: int | None) -> Encoded:
        heads = self._heads(prompt)
        ids, start = self._from_head(heads, prompt.text, read)
        frame = self._frame(prompt.without_context())
        excess = 0 if budget is None else len(ids) - len(frame) - budget - SEAM
        if excess > 0 and prompt.context is not None:
            ids = self._cut(prompt, ids, start, excess)
        most = len(frame) + len(self._after) - 1  # one token of the frame is always left to read
        lengths = (len(self._before) + min(len(head.ids), most) for head in heads)
        prefixes = tuple(sorted({n for n in lengths if n >= _WORTH_SHARING}))
        return Encoded((*self._before, *ids, *self._after), excess > 0, prefixes)

    def _heads(self, prompt: Prompt) -> list[_Head]:
        """Return the heads of a text: up to the first field, and up to the passages where fields stand before those."""
        start = prompt.context[0] if prompt.context else prompt.fixed
        heads = [self._head(prompt.text[:end]) for end in sorted({min(prompt.fixed, start), start}) if end]
        return [h for h in heads if heads[-1].ids[: len(h.ids)] == h.ids]

    def _compute_frame(self, prompt: Prompt) -> tuple[int, ...]:
        """Tokenise a prompt whose context is empty."""
        [read] = self._read([prompt.text])
        return tuple(self._from_head(self._heads(prompt), prompt.text, read)[0])

    def _from_head(self, heads: Sequence[_Head], text: str, ids: list[int]) -> tuple[list[int], _Head]:
        """Return a text's tokens, beginning with those of its last head, and what was not tokenised with the rest.

        The text is tokenised as a whole, unless what follows the head is made to run into it: then it is tokenised
        from there on, so that no passage decides what its own prompt shares with others.
        """
        if not heads or tuple(ids[: len(heads[-1].ids)]) == heads[-1].ids:
            return ids, _Head((), 0)
        [rest] = self._read([text[heads[-1].chars :]])
        return [*heads[-1].ids, *rest], heads[-1]

    def _compute_head(self, text: str) -> _Head:
        """Return the tokens of a text that no text after it changes, judged by a dozen different ones."""
        found = [self._read_with_places(text + after) for after in _AFTER_A_HEAD]
        ids, offsets = found[0]
        same = common_length([tuple(read) for read, _ in found])
        while same and any(len(o) > same and o[same][0] < offsets[same - 1][1] for _, o in found):
            same -= 1  # not between two tokens of one character
        return _Head(tuple(ids[:same]), offsets[same - 1][1] if same else 0)

    def _read(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise texts by the tokenizer's library, which takes less time without the places of the tokens."""
        tokenizable, read = list(map(_tokenizable, texts)), self._backend.encode_batch_fast
        together = sum(map(len, tokenizable)) > _MUCH_TEXT
        parts = [tokenizable] if together else [[text] for text in tokenizable]
        return [found.ids for part in parts for found in read(part, add_special_tokens=False)]

    def _read_with_places(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return a text's tokens, and the first character and the one behind the last of each."""
        found = self._backend.encode(_tokenizable(text), add_special_tokens=False)
        return found.ids, found.offsets

    def _cut(self, prompt: Prompt, ids: list[int], head: _Head, excess: int) -> list[int]:
        """Leave out tokens at the end of the context; `head` was tokenised apart from what follows it."""
        start, end = (at - head.chars for at in prompt.context or (0, 0))
        places = self._read_with_places(prompt.text[head.chars :])[1]
        inside = [i for i, (a, b) in enumerate(places, len(head.ids)) if a >= start and b <= end and b > a]
        if not inside or inside[-1] + 1 - inside[0] < excess:  # token boundaries that no cut can satisfy: no context
            return list(self._frame(prompt.without_context()))
        last = inside[-1] + 1
        return ids[: last - excess] + ids[last:]


def _leading_special(tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that a tokenizer puts before every text."""
    ids: Sequence[int] = tokenizer("a")["input_ids"]
    plain = tokenizer("a", add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return next((tuple(ids[:at]) for at in range(len(ids)) if ids[at : at + len(plain)] == plain), ())


def _tokenizable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, which keeps the length, so that the context stays where it is."""
    return _LONE.sub("\ufffd", text)


def common_length(sequences: Sequence[tuple[int, ...]]) -> int:
    """Return the length of the sequences' common prefix."""
    first, last = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
