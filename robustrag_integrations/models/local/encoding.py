"""Prompts to tokens: one BOS, hostile text as plain text, passages cut to a budget that no passage controls.

And tokens to text, and chat templates around a message. No model is needed for it, as it may run elsewhere.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from robustrag_integrations._util.errors import ModelError, missing
from robustrag_integrations.text.prompts import ABSTENTION, Prompt
from robustrag_integrations.text.reasoning import parts_of

_LONE = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: JSON can spell them, tokenizers refuse them
_AFTER_A_HEAD = ("", "a", "A", " a", "\n", "\n\nA", "  ", "\t", "1", ".", ":", '"', "é", "中")
_REMEMBERED = 128  # texts around passages; the same for every source of a question
_WORTH_SHARING = 8  # tokens
_MUCH_TEXT = 2**15  # characters; above, it pays to tokenise texts in parallel
_SLOT = "robustrag-prompt-goes-here"
# Switches of templates, with values for off and on. One counts where the two give different prompts.
_FLAGS = ("enable_thinking", "thinking", "enable_reasoning", "reasoning", "use_thinking", "think")
_SWITCHES: dict[str, tuple[Any, Any]] = {**dict.fromkeys(_FLAGS, (False, True)), "thinking_budget": (0, 4096)}
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


# --- chat templates, with reasoning turned off where the template has a switch for it


@dataclass(frozen=True)
class ChatFrame:
    """A chat template around a message.

    Attributes:
        before: the text before the message.
        after: the text behind it, the beginning of the reply included.
        options: the template's variables that were set to turn reasoning off.
        opened: the opening mark of reasoning that the frame ends in, so that replies lack it; empty if there is none.
        reasons: why replies begin with reasoning all the same; None where nothing says so.
    """

    before: str
    after: str
    options: Mapping[str, Any] = field(default_factory=dict)
    opened: str = ""
    reasons: str | None = None


def chat_frame(tokenizer: Any, given: Mapping[str, Any] | None = None) -> ChatFrame:
    """Render the frame of a tokenizer's chat template, around a placeholder, so that it never sees a passage.

    `given` are variables of the template, in place of those that turn reasoning off.
    """
    try:
        source = str(tokenizer.get_chat_template())
    except Exception:  # no template, or several
        source = str(getattr(tokenizer, "chat_template", "") or "")
    effort = next((e for e in ("none", "minimal") if f"'{e}'" in source or f'"{e}"' in source), "low")
    switches = {**_SWITCHES, "reasoning_effort": (effort, "high")}
    named = {name: values for name, values in switches.items() if re.search(rf"(?<![\w.]){name}\b", source)}
    found = {name: off for name, (off, on) in named.items() if _differ(tokenizer, {name: off}, {name: on})}
    options = {**found, **(given or {})}
    before, after = _rendered(tokenizer, options)
    opening = parts_of(after)
    opened = after[len(opening.answer) :] if opening.unfinished else ""
    reasons = None
    if opened:
        reasons = (
            "begins every reply with reasoning: a reply counts once its reasoning is over, within max_new_tokens; a "
            "switch of the template's own can be given as template_options={...}"
        )
    elif "<|channel|>" in source and "analysis" in source and "final" not in after:
        reasons = (
            "is Harmony's, whose models reason in a channel of their own: a reply counts once it comes to the channel "
            "`final`, within max_new_tokens"
        )
    return ChatFrame(before, after, options, opened, reasons)


def _differ(tokenizer: Any, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return _rendered(tokenizer, one) != _rendered(tokenizer, other)
    except Exception:  # it takes other values, which are unknown here
        return False


def _rendered(tokenizer: Any, options: Mapping[str, Any]) -> tuple[str, str]:
    messages = [{"role": "user", "content": _SLOT}]
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    before, slot, after = text.partition(_SLOT)
    if not slot or _SLOT in after:
        raise ValueError("the tokenizer's chat template rewrites the user's message; pass chat=False to go without")
    return before, after


# --- tokens to text


def load_tokenizer(name_or_path: str) -> tuple[Any, frozenset[int]]:
    """Load a fast tokenizer and the tokens that end its model's texts; remote code is never run."""
    try:
        from transformers import AutoTokenizer, GenerationConfig
    except ImportError as error:
        raise missing("this model needs a tokenizer", "remote") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot load the tokenizer {name_or_path!r}: {error}. Pass tokenizer= with the folder or name of the "
            "model that the server runs"
        ) from error
    with suppress(OSError, ValueError):  # many models have none
        return tokenizer, ends_in(GenerationConfig.from_pretrained(name_or_path))
    return tokenizer, frozenset()


def ends_in(config: Any) -> frozenset[int]:
    """Return the tokens that end a model's texts, by its configuration."""
    listed = getattr(config, "eos_token_id", None)
    return frozenset(listed if isinstance(listed, (list, tuple)) else [] if listed is None else [listed])


class TokenizerCodec:
    """Decodes the tokens of a fast transformers tokenizer; `ends` are tokens that end a text, besides its own."""

    def __init__(self, tokenizer: Any, ends: Iterable[int] = ()) -> None:
        self._tokenizer = tokenizer
        self.ends = frozenset(ends) | ends_in(tokenizer)
        self.size = len(tokenizer)  # a model may have room for more
        self._by_text: dict[str, int | None] = {}
        self._learning = threading.Lock()

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of generated tokens, special tokens left out."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def is_end(self, token: int) -> bool:
        """True if the token ends a text."""
        return token in self.ends

    def token_of(self, text: str) -> int | None:
        """Return the only token with this text; None where there are several, or none."""
        with self._learning:  # replies are read in several threads, and this takes a second for a hundred thousand
            for token in range(self.size) if not self._by_text else ():
                word = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
                self._by_text[word] = None if word in self._by_text else token
            return self._by_text.get(text)
