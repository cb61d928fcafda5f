"""Reasoning that a model writes into the text of its reply, told from the answer by the marks around it.

Marks are tags (`<think>`, `</reasoning>`, `[THINK]`, `◁think▷`, `<|begin_of_thought|>`) in any case, with white space,
attributes or HTML escapes, and the channels of Harmony (gpt-oss) and Gemma. They are read from left to right:

- Between an opening mark and its closing mark stands reasoning; blocks may be nested.
- A closing mark that closes nothing ends reasoning that began with the reply: templates often put the opening mark
  into the prompt. So does Harmony's channel `final`.
- Reasoning that is never closed is unfinished. So is a reply that ends in the middle of a mark.

Everything here is a function of one reply and linear in its length.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_NAMES = (
    "thinking", "think", "thoughts", "thought", "thought_process", "reasoning", "reasoning_content", "reason",
    "analysis", "scratchpad", "reflection", "inner_monologue", "internal_monologue", "inner_thoughts",
)  # fmt: skip
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_BRACKETED = "thinking|think|thoughts|thought|reasoning"
_MARK = re.compile(
    # <think>, < THINK >, <think type="x">, &lt;think&gt;, <seed:think>, <|think|>, <antthinking>
    rf"(?:<|&lt;|＜)\s{{0,4}}[|｜]?\s{{0,4}}(?:[a-z]{{1,12}}:|ant)?(?P<opening>{_NAME})(?![\w:.-])"
    rf"(?:[^<>＜＞&\n]{{0,200}}?(?P<alone>/?)(?:>|&gt;|＞))?"
    rf"|(?:<|&lt;|＜)\s{{0,4}}[|｜]?\s{{0,4}}[/\\]\s{{0,4}}[|｜]?\s{{0,4}}(?:[a-z]{{1,12}}:|ant)?"
    rf"(?P<closing>{_NAME})(?![\w:.-])(?:\s{{0,4}}[|｜]?\s{{0,4}}(?:>|&gt;|＞))?"
    # <|begin_of_thought|>, <|END_THINKING|>, <|thinking_end|>
    rf"|<[|｜]?\s{{0,4}}(?P<edge>begin|start|end|stop)[_▁-](?:of[_▁-])?(?P<edged>{_NAME})\s{{0,4}}[|｜]?>"
    rf"|<[|｜]?\s{{0,4}}(?P<sided>{_NAME})[_▁-](?P<side>begin|start|end|stop)\s{{0,4}}[|｜]?>"
    # [THINK], but not the link [reasoning](...)
    rf"|\[\s{{0,4}}(?P<bslash>/?)\s{{0,4}}(?P<bracketed>{_BRACKETED})\s{{0,4}}\](?!\()"
    rf"|◁\s{{0,4}}(?P<kslash>/?)\s{{0,4}}(?P<pointed>{_NAME})(?![\w:.-])(?:\s{{0,4}}[▷>])?"
    # Harmony and Gemma
    r"|<\|channel\|>\s{0,4}(?P<channel>final|analysis|commentary|[a-z]{0,20})"
    r"(?:[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>)?"
    r"|(?P<gemma><\|channel>\s{0,4}[a-z]{0,20})|(?P<gemma_end><channel\|>)"
    r"|(?P<unused><unused94>(?:thought)?)|(?P<unused_end><unused95>)"
    r"|(?P<control><\|(?:start|end|return|call|message|constrain)\|>(?:(?<=<\|start\|>)(?:assistant|system|user))?)"
    # Harmony with its special tokens left out: "analysisThe user asks ...assistantfinalParis"
    r"|(?P<bare_final>assistantfinal)",
    re.IGNORECASE,
)
_BARE_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z])")
_BEGUN = re.compile(
    r"(?:<|＜|&(?:l(?:t;?)?)?|◁|\[)[\s|｜/\\]{0,20}(?P<word>[\w:|｜▁-]{0,60})[\s|｜]{0,8}\Z", re.IGNORECASE
)
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
    """A reply's text, taken apart.

    Attributes:
        answer: what is left without reasoning and its marks; of unfinished reasoning, what stands before it.
        reasoning_chars: how many characters were left out.
        unfinished: whether the reply ends in the middle of its reasoning, or of a mark.
    """

    answer: str
    reasoning_chars: int = 0
    unfinished: bool = False


def parts_of(reply: str) -> Parts:
    """Take a reply apart into its answer and its reasoning."""
    if not may_have_marks(reply):
        return Parts(reply)
    kept: list[str] = []  # of the answer
    opened: list[str] = []
    depth = Counter[str]()
    done = 0
    bare = False
    if match := _BARE_ANALYSIS.match(reply):
        opened, depth, done, bare = ["channel"], Counter(channel=1), match.end(), True
    for match in _MARK.finditer(reply, done):
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
    """Whether a text has a character that marks begin with; most replies have none."""
    return any(c in text for c in "<＜◁[&") or _BARE_ANALYSIS.match(text) is not None


def clear_of_marks(text: str, *, at_start: bool) -> tuple[int, bool]:
    """How far a text that goes on can be read without meeting a mark, and whether what stops it is a whole one.

    Args:
        text: what is there so far.
        at_start: whether nothing but white space stands before it in the reply.
    """
    if at_start:
        begins = text.lstrip()
        if _BARE_ANALYSIS.match(text) or "analysis".startswith(begins):
            return len(text) - len(begins), len(begins) > len("analysis")
    for match in _MARK.finditer(text):
        if match["bare_final"] is None:
            return match.start(), match.end() < len(text)  # at the very end it may yet turn out to be another word
    begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_BEGUN))
    return (begun.start() if begun else len(text)), False


def _meaning(match: re.Match[str]) -> tuple[str, str]:
    """Which kind of mark this is, and what it does: "opens", "closes", "ends all" or "nothing"."""
    if tag := match["opening"] or match["closing"]:
        return _kind(tag), "closes" if match["closing"] else "nothing" if match["alone"] else "opens"
    if tag := match["bracketed"] or match["pointed"]:
        return _kind(tag), "closes" if match["bslash"] or match["kslash"] else "opens"
    if tag := match["edged"] or match["sided"]:
        edge = (match["edge"] or match["side"]).lower()
        return _kind(tag), "closes" if edge in _ENDS else "opens"
    if match["channel"] is not None:
        return "channel", "ends all" if match["channel"].lower() == "final" else "opens"
    if match["bare_final"]:
        return "bare", "ends all"
    for name in ("gemma", "unused"):
        if match[name]:
            return name, "opens"
        if match[f"{name}_end"]:
            return name, "closes"
    return "control", "nothing"


def _kind(tag: str) -> str:
    """Which tags close each other: `<think>` is often closed by `</thinking>`, `<reasoning>` by its own kind."""
    name = tag.lower()
    return "think" if name in _THINKS else name


def _unfinished_mark(text: str) -> re.Match[str] | None:
    """The mark that a text ends in the middle of."""
    begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_BEGUN))
    if begun is None:
        return None
    word = begun["word"].lower().lstrip("|｜").rpartition(":")[2]
    return begun if len(word) >= 2 and any(name.startswith(word.rstrip("|｜")) for name in _WORDS) else None


def _apart(text: str) -> str:
    """A piece of an answer before a mark, such that the piece behind it cannot make a new mark with it."""
    return f"{text}…" if _BEGUN.search(text, max(0, len(text) - _LONGEST_BEGUN)) else text
