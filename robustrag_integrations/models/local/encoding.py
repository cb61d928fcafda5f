"""Prompts to tokens: one BOS, hostile text as plain text, passages cut to a budget that no passage controls."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.local.chat_frames import ChatFrame, chat_frame
from robustrag_integrations.prompts import ABSTENTION, Prompt

_LONE = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: JSON can spell them, tokenizers refuse them
_AFTER_A_HEAD = ("", "a", "A", " a", "\n", "\n\nA", "  ", "\t", "1", ".", ":", '"', "é", "中")
_REMEMBERED = 128  # texts around passages; the same for every group of a question
_WORTH_SHARING = 8  # tokens
_MUCH_TEXT = 2**15  # characters; above, it pays to tokenise texts in parallel
SEAM = 2  # tokens by which a text with a passage may exceed the sum of its parts, as token boundaries shift

_Place = tuple[int, int]  # of a token: its first character, and the one behind its last


@dataclass(frozen=True)
class Encoded:
    """Token ids of a prompt.

    Attributes:
        ids: all of them.
        truncated: True if its passages were cut to fit.
        prefixes: lengths of the leading parts that no passage controls: the one of all questions, then (where the
            question stands before the passages) the one of all groups of this question.
    """

    ids: tuple[int, ...]
    truncated: bool = False
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

    Attributes:
        frame: the chat template's; None without one.

    Raises:
        ValueError: the tokenizer cannot tell where its tokens come from, or its chat template rewrites the prompt.
    """

    def __init__(self, tokenizer: Any, *, chat: bool, template_options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False) or not hasattr(tokenizer, "backend_tokenizer"):
            raise ValueError(
                f"{type(tokenizer).__name__} gives no character offsets; load a fast tokenizer "
                "(AutoTokenizer.from_pretrained does by default)"
            )
        own = copy.deepcopy(tokenizer)  # its reading of "</s>" as text is a setting, which others change
        self._head = lru_cache(maxsize=_REMEMBERED)(self._compute_head)
        self._frame = lru_cache(maxsize=_REMEMBERED)(self._compute_frame)
        self.frame = chat_frame(tokenizer, template_options) if chat else None
        self._before, self._after = _parsed_frame(own, self.frame) if self.frame else (_leading_special(own), ())
        self._backend = _reading_plain_text(own)

    def encode(self, prompt: Prompt, budget: int | None = None) -> Encoded:
        """Encode a prompt in at most `frame_length` + `budget` tokens: the end of a longer context is cut."""
        return self.encode_all([prompt], budget)[0]

    def encode_all(self, prompts: Sequence[Prompt], budget: int | None = None) -> list[Encoded]:
        """`encode` for several prompts at once."""
        found = self._read([p.text for p in prompts])
        return [self._encoded(p, read, budget) for p, read in zip(prompts, found, strict=True)]

    def frame_length(self, prompt: Prompt) -> int:
        """Return the number of a prompt's tokens without its context; the same for every group of a question."""
        return len(self._before) + len(self._frame(prompt.without_context())) + len(self._after) + SEAM

    def abstentions(self) -> tuple[tuple[int, ...], ...]:
        """Return the token sequences that spell the abstention string, with and without a leading space."""
        variants = map(tuple, self._read([" " + ABSTENTION, ABSTENTION]))
        return tuple(dict.fromkeys(v for v in variants if v))

    def spellings(self, text: str) -> tuple[tuple[int, ...], ...]:
        """Return the token sequences that spell a reply: with a leading space, too, unless the prompt ends in one."""
        if not text.strip():
            return ()
        spaced = self.frame is not None and self.frame.after[-1:].isspace()
        return tuple(dict.fromkeys(map(tuple, self._read([text] if spaced else [" " + text, text]))))

    def first_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the different tokens that texts begin with."""
        return tuple(dict.fromkeys(read[0] for read in self._read(texts) if read))

    def _encoded(self, prompt: Prompt, read: list[int], budget: int | None) -> Encoded:
        heads = self._heads(prompt)
        ids, offsets = self._from_head(heads, prompt.text, read)
        excess = 0 if budget is None else len(ids) - len(self._frame(prompt.without_context())) - budget - SEAM
        cut = excess > 0
        if cut and prompt.context is not None:
            ids = self._without_the_end_of_the_context(prompt, ids, offsets(), excess)
        return Encoded((*self._before, *ids, *self._after), cut, self._prefixes(prompt, heads))

    def _heads(self, prompt: Prompt) -> list[_Head]:
        """Return the heads of a text: up to the first field, and up to the passages where fields stand before those."""
        start = prompt.context[0] if prompt.context else prompt.fixed
        heads = [self._head(prompt.text[:end]) for end in sorted({min(prompt.fixed, start), start}) if end]
        return [h for h in heads if heads[-1].ids[: len(h.ids)] == h.ids]

    def _prefixes(self, prompt: Prompt, heads: Sequence[_Head]) -> tuple[int, ...]:
        """Return the lengths in tokens of heads worth sharing; one token of the frame is always left to read."""
        most = len(self._frame(prompt.without_context())) + len(self._after) - 1
        lengths = (len(self._before) + min(len(head.ids), most) for head in heads)
        return tuple(sorted({n for n in lengths if n >= _WORTH_SHARING}))

    def _compute_frame(self, prompt: Prompt) -> tuple[int, ...]:
        """Tokenise a prompt whose context is empty."""
        [read] = self._read([prompt.text])
        return tuple(self._from_head(self._heads(prompt), prompt.text, read)[0])

    def _from_head(
        self, heads: Sequence[_Head], text: str, ids: list[int]
    ) -> tuple[list[int], Callable[[], list[_Place]]]:
        """Return a text's tokens, beginning with those of its last head, and a function that gives their places.

        The text is tokenised as a whole, unless what follows the head is made to run into it: then it is tokenised
        from there on, so that no passage decides what its own prompt shares with others.
        """
        if not heads or tuple(ids[: len(heads[-1].ids)]) == heads[-1].ids:
            return ids, lambda: self._read_with_places(text)[1]
        head = heads[-1]
        rest, places = self._read_with_places(text[head.chars :])
        moved = ((a + head.chars, b + head.chars) for a, b in places)
        return [*head.ids, *rest], lambda: [*[(0, 0)] * len(head.ids), *moved]

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

    def _read_with_places(self, text: str) -> tuple[list[int], list[_Place]]:
        """Return a text's tokens and their places in it."""
        found = self._backend.encode(_tokenizable(text), add_special_tokens=False)
        return found.ids, found.offsets

    def _without_the_end_of_the_context(
        self, prompt: Prompt, ids: list[int], offsets: Sequence[_Place], excess: int
    ) -> list[int]:
        start, end = prompt.context or (0, 0)
        inside = [i for i, (a, b) in enumerate(offsets) if a >= start and b <= end and b > a]
        if not inside or inside[-1] + 1 - inside[0] < excess:  # token boundaries that no cut can satisfy: no context
            return list(self._frame(prompt.without_context()))
        last = inside[-1] + 1
        return ids[: last - excess] + ids[last:]

    @property
    def opened(self) -> str:
        """The mark of reasoning that stands at the end of every prompt; replies are read with it in front."""
        return self.frame.opened if self.frame else ""

    def refuse_reasoning(self) -> None:
        """Refuse a model whose replies begin with reasoning, which decoding aggregation would take for the answer.

        Raises:
            ModelError: they do; the message says why, and what to do.
        """
        if self.frame is not None and self.frame.reasons is not None:
            raise ModelError(
                f"decoding aggregation would decode reasoning in place of an answer: the chat template "
                f"{self.frame.reasons}. Take keyword aggregation, another model, or chat=False for a base model"
            )


def _reading_plain_text(tokenizer: Any) -> Any:
    """Return a tokenizer's backend, set to read all text as plain text, without truncation or padding."""
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = True
    return backend


def _leading_special(tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that a tokenizer puts before every text."""
    ids: Sequence[int] = tokenizer("a")["input_ids"]
    plain = tokenizer("a", add_special_tokens=False, split_special_tokens=True)["input_ids"]
    for at in range(len(ids)):
        if ids[at : at + len(plain)] == plain:
            return tuple(ids[:at])
    return ()


def _parsed_frame(tokenizer: Any, frame: ChatFrame) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens around a prompt, special ones among them."""
    before, after = (
        tuple(tokenizer(text, add_special_tokens=False, split_special_tokens=False)["input_ids"]) if text else ()
        for text in (frame.before, frame.after)
    )
    return before, after


def _tokenizable(text: str) -> str:
    """Replace lone surrogates by U+FFFD, which keeps the length, so that the context stays where it is."""
    return _LONE.sub("\ufffd", text)


def common_length(sequences: Sequence[tuple[int, ...]]) -> int:
    """Return the length of the sequences' common prefix."""
    first, last = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
