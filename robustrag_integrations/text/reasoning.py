"""Separates the reasoning in the text of a reply from the answer, by the marks around it.

Marks are tags (`<think>`, `</reasoning>`, `[THINK]`, `◁think▷`, `<|begin_of_thought|>`) in any case, with white space
or attributes, and the channels of Harmony (gpt-oss) and Gemma. They are read from left to right:

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
_THINKS = frozenset({"thinking", "think", "thoughts", "thought", "thought_process"})  # these close each other
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_GAP = r"\s{0,5}"
_LESS = rf"<{_GAP}[|｜]?{_GAP}"
_MORE = rf"{_GAP}[|｜]?>"
_MARK = re.compile(
    # <think>, < THINK >, </think>, <think type="x">, <seed:think>, <|think|>, <antthinking>, but not <think-tank>
    rf"{_LESS}(?P<slash>[/\\]?){_GAP}(?:[a-z]{{1,12}}:|ant)?(?P<tag>{_NAME})(?![:-]?\w)"
    rf"(?:[^<>\n]{{0,200}}?(?P<alone>/?){_MORE})?"
    # <|begin_of_thought|>, <|END_THINKING|>
    rf"|{_LESS}(?P<edge>begin|start|end|stop)[_▁-](?:of[_▁-])?(?P<edged>{_NAME})(?:{_MORE})?"
    # <|thinking_end|>
    rf"|{_LESS}(?P<sided>{_NAME})[_▁-](?P<side>begin|start|end|stop)(?![:-]?\w)(?:{_MORE})?"
    # [THINK], ◁think▷, but not the link [reasoning](...)
    rf"|\[{_GAP}(?P<cut>/?){_GAP}(?P<bracketed>thinking|think|thoughts|thought|reasoning){_GAP}\](?!\()"
    rf"|◁{_GAP}(?P<pointed_cut>/?){_GAP}(?P<pointed>{_NAME})(?:{_GAP}[▷>])?"
    # Harmony and Gemma
    rf"|<\|channel\|>{_GAP}(?P<channel>[a-z]{{0,20}})"
    r"(?:[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>)?"
    rf"|(?P<opens><\|channel>{_GAP}[a-z]{{0,20}}|<unused94>(?:thought)?)|(?P<closes><channel\|>|<unused95>)"
    r"|(?P<control><\|(?:start|end|return|call|message|constrain)\|>(?:(?<=<\|start\|>)(?:assistant|system|user))?)"
    # Harmony with its special tokens left out: "analysisThe user asks ...assistantfinalParis"
    r"|(?P<bare_final>assistantfinal)",
    re.IGNORECASE,
)
_BARE_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z])")
_BEGUN = re.compile(r"[<◁\[][\s|｜/\\]{0,20}(?P<word>[\w:|▁-]{0,60})[\s|｜]{0,8}\Z", re.IGNORECASE)
_LONGEST_BEGUN = 100  # characters of a mark that has begun
_WORDS = (
    *_NAMES, "begin_of_thought", "end_of_thought", "start_thinking", "end_thinking", "stop_thinking",
    "begin_thinking", "channel|", "start|", "end|", "return|", "call|", "message|", "constrain|", "unused9",
)  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """A reply's text, split into answer and reasoning, of which the number of characters is left.

    It is `unfinished` if it ends in the middle of its reasoning, or of a mark: then the answer is what stands before.
    """

    answer: str
    reasoning_chars: int = 0
    unfinished: bool = False


def parts_of(reply: str) -> Parts:
    """Split a reply into its answer and its reasoning."""
    bare = _BARE_ANALYSIS.match(reply)
    if not (bare or "<" in reply or "[" in reply or "◁" in reply):
        return Parts(reply)
    kept: list[str] = []  # of the answer
    opened = ["channel"] if bare else []
    depth = Counter(opened)
    done = bare.end() if bare else 0
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
            kept, opened, depth, bare = [], [], Counter(), None
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


def clear_of_marks(text: str, *, at_start: bool) -> tuple[int, bool]:
    """Return how far an unfinished text is free of marks, and whether a whole mark stands there.

    `at_start`: nothing but white space stands before it in the reply.
    """
    if at_start:
        begins = text.lstrip()
        if _BARE_ANALYSIS.match(text) or "analysis".startswith(begins):
            return len(text) - len(begins), len(begins) > len("analysis")
    for match in _MARK.finditer(text):
        if match["bare_final"] is None:
            return match.start(), match.end() < len(text)  # at the very end it may yet turn out to be another word
    begun = _begun(text)
    return (begun.start() if begun else len(text)), False


def _meaning(match: re.Match[str]) -> tuple[str, str]:
    """Return the kind of a mark, and its effect: "opens", "closes", "ends all" or "nothing"."""
    if name := match["tag"] or match["edged"] or match["sided"] or match["bracketed"] or match["pointed"]:
        name = "think" if name.lower() in _THINKS else name.lower()
        ends = (match["edge"] or match["side"] or "").lower() in ("end", "stop")
        if ends or match["slash"] or match["cut"] or match["pointed_cut"]:
            return name, "closes"
        return name, "nothing" if match["alone"] else "opens"
    if match["channel"] is not None:
        return "channel", "ends all" if match["channel"].lower() == "final" else "opens"
    if match["bare_final"]:
        return "bare", "ends all"
    return "gemma", "opens" if match["opens"] else "closes" if match["closes"] else "nothing"


def _unfinished_mark(text: str) -> re.Match[str] | None:
    begun = _begun(text)
    if begun is None:
        return None
    word = begun["word"].lower().lstrip("|").rpartition(":")[2]
    return begun if len(word) >= 2 and any(name.startswith(word.rstrip("|")) for name in _WORDS) else None


def _begun(text: str) -> re.Match[str] | None:
    return _BEGUN.search(text, max(0, len(text) - _LONGEST_BEGUN))


def _apart(text: str) -> str:
    """Close a piece of an answer before a mark, so that it cannot form a new mark with the next piece."""
    return f"{text}…" if _begun(text) else text
