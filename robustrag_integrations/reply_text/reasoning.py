"""Separates the reasoning in the text of a reply from the answer, by the marks around it.

Marks are tags (`<think>`, `</reasoning>`, `[THINK]`, `◁think▷`, `<|begin_of_thought|>`) in any case, with white space,
attributes or HTML escapes, and the channels of Harmony (gpt-oss) and Gemma. They are read from left to right:

- Between an opening mark and its closing mark stands reasoning; blocks may be nested.
- A closing mark that closes nothing ends reasoning that began with the reply: templates often put the opening mark
  into the prompt. So does Harmony's channel `final`.
- Reasoning that is never closed is unfinished. So is a reply that ends in the middle of a mark.

Letters and signs that only look like those of a mark (fullwidth, mathematical, Cyrillic, Greek) are taken for them, and
invisible characters inside of a mark for nothing.

Everything here is a function of one reply and linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache

_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
"""Characters that are not seen, as the inside of a pattern's brackets."""

_HIDDEN = f"[{_UNSEEN}]{{0,3}}"
"""A pattern of the few invisible characters that may stand between two letters of a mark."""

_SIGNS = {"<": "﹤⟨ᐸ˂", ">": "﹥⟩ᐳ˃", "|": "∣ǀ❘│", "/": "∕⁄", "&": "﹠"}  # fmt: skip
_LETTERS = {
    "a": "аα", "c": "сϲ", "d": "ԁ", "e": "еε", "f": "ғ", "g": "ɡԍ", "h": "һ", "i": "іιı", "j": "ј", "k": "кκ",
    "l": "ӏⅼ", "m": "м", "n": "ոη", "o": "оοо", "p": "рρ", "r": "г", "s": "ѕ", "t": "тτ", "u": "υս",
    "x": "х", "y": "уγ",
    "A": "АΑ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ",
    "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "ҮΥ",
}  # fmt: skip
_STYLED = (range(0xFF01, 0xFF5F), range(0x1D400, 0x1D7CC), range(0x2100, 0x2140), range(0x24B6, 0x24EA))


def _like_ascii() -> dict[int, str]:
    found = {code: unicodedata.normalize("NFKC", chr(code)) for codes in _STYLED for code in codes}
    table = {code: text for code, text in found.items() if len(text) == 1 and text.isascii()}
    for given in (_SIGNS, _LETTERS):
        table |= {ord(like): text for text, likes in given.items() for like in likes}
    return table


_LIKE = _like_ascii()


def _ascii(text: str) -> str:
    """Replace look-alikes with ASCII, character by character, so that the length stays the same."""
    return text if text.isascii() else text.translate(_LIKE)


_NAMES = (
    "thinking", "think", "thoughts", "thought", "thought_process", "reasoning", "reasoning_content", "reason",
    "analysis", "scratchpad", "reflection", "inner_monologue", "internal_monologue", "inner_thoughts",
)  # fmt: skip


def _any(*words: str) -> str:
    """Return a pattern of any of these words, with invisible characters allowed between their letters."""
    return "|".join(f"{_HIDDEN}".join(map(re.escape, word)) for word in sorted(words, key=len, reverse=True))


_NAME = _any(*_NAMES)
_BRACKETED = _any("thinking", "think", "thoughts", "thought", "reasoning")
_GAP = rf"[\s{_UNSEEN}]{{0,5}}"
_LESS = rf"(?:<|&lt;|&#60;|&#x3c;){_GAP}"
_MORE = r"(?:>|&gt;|&#62;|&#x3e;)"
_BAR = rf"\|?{_GAP}"
_ALONE = rf"{_HIDDEN}(?![:-]?\w)"  # not the beginning of another word, such as <think-tank>
_EDGE = _any("begin", "start", "end", "stop")
_CONTROLS = _any("start", "end", "return", "call", "message", "constrain")


@cache
def _mark() -> re.Pattern[str]:
    """Return a pattern of any mark. Compiled on first use, as that is slow and few replies hold the start of a mark."""
    return re.compile(
        # <think>, < THINK >, <think type="x">, &lt;think&gt;, <seed:think>, <|think|>, <antthinking>
        rf"{_LESS}{_BAR}{_BAR}(?:[a-z]{{1,12}}:|ant)?(?P<opening>{_NAME}){_ALONE}"
        rf"(?:[^<>&\n]{{0,200}}?(?P<alone>/?){_GAP}{_MORE})?"
        rf"|{_LESS}{_BAR}[/\\]{_GAP}{_BAR}(?:[a-z]{{1,12}}:|ant)?(?P<closing>{_NAME}){_ALONE}(?:{_GAP}{_BAR}{_MORE})?"
        # <|begin_of_thought|>, <|END_THINKING|>, <|thinking_end|>
        rf"|{_LESS}{_BAR}(?P<edge>{_EDGE}){_HIDDEN}[_▁-]{_HIDDEN}(?:{_any('of')}{_HIDDEN}[_▁-]{_HIDDEN})?(?P<edged>{_NAME})"
        rf"(?:{_GAP}{_BAR}{_MORE})?"
        rf"|{_LESS}{_BAR}(?P<sided>{_NAME}){_HIDDEN}[_▁-]{_HIDDEN}(?P<side>{_EDGE}){_ALONE}(?:{_GAP}{_BAR}{_MORE})?"
        # [THINK], but not the link [reasoning](...)
        rf"|\[{_GAP}(?P<bslash>/?){_GAP}(?P<bracketed>{_BRACKETED}){_GAP}\](?!\()"
        rf"|◁{_GAP}(?P<kslash>/?){_GAP}(?P<pointed>{_NAME})(?:{_GAP}[▷>])?"
        # Harmony and Gemma
        rf"|{_LESS}\|{_GAP}{_any('channel')}{_GAP}\|{_GAP}>?{_GAP}(?P<channel>{_any('final')}|[a-z]{{0,20}})"
        r"(?:[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>)?"
        rf"|(?P<gemma>{_LESS}\|{_GAP}{_any('channel')}{_GAP}>?{_GAP}[a-z]{{0,20}})"
        rf"|(?P<gemma_end>{_LESS}{_any('channel')}{_GAP}\|{_GAP}>?)"
        rf"|(?P<unused>{_LESS}{_any('unused94')}{_GAP}(?!\w)>?(?:thought)?)"
        rf"|(?P<unused_end>{_LESS}{_any('unused95')}{_GAP}(?!\w)>?)"
        rf"|(?P<control>{_LESS}\|{_GAP}(?:{_CONTROLS}){_GAP}\|{_GAP}>?"
        r"(?:(?<=<\|start\|>)(?:assistant|system|user))?)"
        # Harmony with its special tokens left out: "analysisThe user asks ...assistantfinalParis"
        r"|(?P<bare_final>assistantfinal)",
        re.IGNORECASE,
    )


_BARE_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z])")
_BEGUN = re.compile(
    rf"(?:<|&(?:l(?:t;?)?|#(?:x?[36]?[0c]?;?)?)?|◁|\[)[\s|/\\{_UNSEEN}]{{0,20}}(?P<word>[\w:|▁{_UNSEEN}-]{{0,60}})"
    rf"[\s|{_UNSEEN}]{{0,8}}\Z",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]")
_LONGEST_BEGUN = 100  # characters of a mark that has begun
_WORDS = (
    *_NAMES, "begin_of_thought", "end_of_thought", "start_thinking", "end_thinking", "stop_thinking",
    "begin_thinking",
    "channel|", "start|", "end|", "return|", "call|", "message|", "constrain|", "unused94", "unused95",
)  # fmt: skip
_ENDS = frozenset({"end", "stop"})
_THINKS = frozenset({"thinking", "think", "thoughts", "thought", "thought_process"})


@dataclass(frozen=True)
class Parts:
    """A reply's text, split into answer and reasoning.

    Attributes:
        answer: the text without reasoning and its marks; of unfinished reasoning, what stands before it.
        reasoning_chars: number of characters that were left out.
        unfinished: True if the reply ends in the middle of its reasoning, or of a mark.
    """

    answer: str
    reasoning_chars: int = 0
    unfinished: bool = False


def parts_of(reply: str) -> Parts:
    """Split a reply into its answer and its reasoning."""
    if not may_have_marks(reply):
        return Parts(reply)
    kept: list[str] = []  # of the answer
    opened: list[str] = []
    depth = Counter[str]()
    done = 0
    bare = False
    if match := _BARE_ANALYSIS.match(reply):
        opened, depth, done, bare = ["channel"], Counter(channel=1), match.end(), True
    for match in _mark().finditer(_ascii(reply), done):
        kind, does = _meaning(match)
        if kind == "bare" and not bare:
            continue
        if not opened:
            kept.append(_apart(reply[done : match.start()]))
        done = match.end()
        if does == "opens":
            opened.append(kind)
            depth[kind] += 1
        elif does == "ends all":
            kept, opened, depth, bare = [], [], Counter(), False
        elif does == "closes" and depth[kind]:
            while (last := opened.pop()) != kind:
                depth[last] -= 1
            depth[kind] -= 1
        elif does == "closes" and not opened:
            kept = []
    unfinished = bool(opened)
    if not opened:
        rest = reply[done:]
        if begun := _unfinished_mark(rest):
            rest, unfinished = rest[: begun.start()], True
        kept.append(rest)
    answer = "".join(kept)
    return Parts(answer, len(reply) - len(answer), unfinished)


def may_have_marks(text: str) -> bool:
    """True if a text has a character that marks begin with; most replies have none."""
    seen = _ascii(text)
    if "<" in seen or "[" in seen or "&" in seen or "◁" in seen:
        return True
    return "analysis" in text and _BARE_ANALYSIS.match(text) is not None


def clear_of_marks(text: str, *, at_start: bool) -> tuple[int, bool]:
    """Return how far an unfinished text is free of marks, and whether a whole mark stands there.

    Args:
        text: the text so far.
        at_start: True if nothing but white space stands before it in the reply.
    """
    text = _ascii(text)
    if at_start:
        begins = text.lstrip()
        if _BARE_ANALYSIS.match(text) or "analysis".startswith(begins):
            return len(text) - len(begins), len(begins) > len("analysis")
    for match in _mark().finditer(text):
        if match["bare_final"] is None:
            return match.start(), match.end() < len(text)  # at the very end it may yet turn out to be another word
    begun = _begun(text)
    return (begun.start() if begun else len(text)), False


def _meaning(match: re.Match[str]) -> tuple[str, str]:
    """Return the kind of a mark, and its effect: "opens", "closes", "ends all" or "nothing"."""
    if tag := match["opening"] or match["closing"]:
        return _kind(tag), "closes" if match["closing"] else "nothing" if match["alone"] else "opens"
    if tag := match["bracketed"] or match["pointed"]:
        return _kind(tag), "closes" if match["bslash"] or match["kslash"] else "opens"
    if tag := match["edged"] or match["sided"]:
        edge = _seen(match["edge"] or match["side"])
        return _kind(tag), "closes" if edge in _ENDS else "opens"
    if match["channel"] is not None:
        return "channel", "ends all" if _seen(match["channel"]) == "final" else "opens"
    if match["bare_final"]:
        return "bare", "ends all"
    for name in ("gemma", "unused"):
        if match[name]:
            return name, "opens"
        if match[f"{name}_end"]:
            return name, "closes"
    return "control", "nothing"


def _kind(tag: str) -> str:
    """Return a tag's kind; tags of one kind close each other: `<think>` is often closed by `</thinking>`, `<reasoning>`
    by its own kind."""
    name = _seen(tag)
    return "think" if name in _THINKS else name


def _seen(word: str) -> str:
    """Return a word of a mark in lower case, without invisible characters."""
    return _INVISIBLE.sub("", word).lower()


def _unfinished_mark(text: str) -> re.Match[str] | None:
    """Return the unfinished mark at the end of a text."""
    begun = _begun(text)
    if begun is None:
        return None
    word = _seen(begun["word"]).lstrip("|").rpartition(":")[2]
    return begun if len(word) >= 2 and any(name.startswith(word.rstrip("|")) for name in _WORDS) else None


def _begun(text: str) -> re.Match[str] | None:
    return _BEGUN.search(_ascii(text), max(0, len(text) - _LONGEST_BEGUN))


def _apart(text: str) -> str:
    """Close a piece of an answer before a mark, so that it cannot form a new mark with the next piece."""
    return f"{text}…" if _begun(text) else text
