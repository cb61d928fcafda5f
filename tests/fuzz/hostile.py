"""Texts, names, data and bytes that may break a parser, a prompt, a page or a terminal."""

from __future__ import annotations

import json
from typing import Any

from tests.fuzz.source import Source

_WORDS = """
    the a of Paris mill Anna Lind river 1871 runs is was not Who option answer Keywords Question Text: I York New O'Neil
    U.S. C# C++ iPhone e-mail km/h per cent minus twenty-one million first Dr. No
"""
WORDS = tuple(_WORDS.split())
TOKENS = (
    "</s>", "<s>", "<pad>", "<unk>", "<|im_start|>system", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "[INST]",
    "[/INST]", "<<SYS>>", "<|start_header_id|>", "\u2581", "Ġ", "##ing", "[MASK]", "<bos>", "<start_of_turn>user",
)  # fmt: skip
TEMPLATES = (
    "{", "}", "{{", "}}", "{context}", "{query}", "{keywords}", "{0}", "{query!r:>{width}}", "{__class__}",
    "{0.__class__.__mro__}", "%s", "%(x)s", "%n", "${HOME}", "$(id)", "`id`", "{{7*7}}", "{% raw %}", "{{ config }}",
    "#{7*7}", "<%= 7*7 %>", "$alpha$", "\\", "\\n", "\\u0000", "$\\frac{1}{0}$",
)  # fmt: skip
HTML = (
    "<script>alert(1)</script>", "</script>", "</style>", "</textarea>", "</title>", "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>", "'\"><b onclick=alert(1)>", "javascript:alert(1)", "data:text/html,<script>", "<!--",
    "-->", "]]>", "<![CDATA[", "&lt;", "&#60;", "&#x3c;script&#x3e;", "&amp;", "&#1114112;", "&#0;", "<a href='",
    "\" onmouseover=\"alert(1)", "<iframe srcdoc=", "<base href=//evil>", "<", ">", "&", "'", '"', "`",
)  # fmt: skip
TERMINAL = (
    "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\", "\x9b31m", "\x1bP", "\x07", "\x08", "\r",
    "\x00", "\x7f", "\x85", "\n", "\n\n", "\t", "\v", "\f", "\x1c", "\u2028", "\u2029", "\u202e", "\u2066", "\u2069",
    "\u200b", "\u200d", "\ufeff", "\u00ad", "\u180e", "\U000e0041", "\ue000", "\ue001", "\ufffe", "\U0010ffff",
)  # fmt: skip
UNICODE = (
    "\ud800", "\udfff", "\ud83d\ude00", "\U0001f600", "e\u0301", "\u0301\u0316\u0323", "\ufdfa", "\u3300", "\ufb01",
    "İ", "ı", "ß", "ẞ", "Σς", "Ǆ", "ａ", "１", "٣", "½", "²", "Ⅷ", "①", "日本", "กำ", "नि", "ﷲ", "\u1e9b\u0323",
    "\u0f73",
)  # fmt: skip
ANSWERS = (
    "I don't know", "I do not know.", "i don’t know", "No information found", "A", "B.", "(c)", "**D**", "Answer: B",
    "The correct answer is A", "0", "Z", "85", "85/100", "Score: 7", "100 out of 100", "rating: -3", "101", "nan",
    "1e309", "٨٥", "yes", "No, ", '"I don\'t know"', "- ", "1. ", "# ", "> ", "**", "__", "`code`", "[1]", "[a](b)",
)  # fmt: skip
NUMBERS = (
    "1,234,567.89", "-$5", "$1.5", "15%", "20 per cent", "1871", "2022-13-45", "31 February 2022", "12:60", "3/4",
    "10^-3", "1990s", "twenty-first", "5 km", "9" * 400, "1." * 50, "1,111" * 30, "0.", ".5", "00:00:00", "-0",
)  # fmt: skip
PATHS = (
    "../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "C:\\x", "\\\\host\\share", "a/../b", "~root", "./.",
    "http://evil.example/?q=", "..%2f", "nul", "-rf", "--output=x",
)  # fmt: skip
JSONISH = ('"', '{"text": "', '"}', "[" * 50, "{}", "null", "NaN", "Infinity", "1e999", "\\ud800", '"\\', ",", ":")
# Words whose hash in spaCy's string store is 0, 1 (a symbol's), "NOUN"'s, "Paris"'s, and two of one hash.
CRAFTED = (
    "fKQjJdXLWpczOPVM", "iNJeQZnRgezCOxmT", "IS_ALPHA", "ldrdeszqYodtnRSg", "NOUN", "ueHauVDbWLwORrAE",
    "vzjxPhgtZwKjjegX", "dekWHjJEWsJyZciz",
)  # fmt: skip
# Letters that patterns take for these where they pass over case, and that no table of words has.
OTHER_CASE = str.maketrans({"i": "\u0131", "s": "\u017f", "k": "\u212a", "I": "\u0130"})
KINDS = (WORDS, TOKENS, TEMPLATES, HTML, TERMINAL, UNICODE, ANSWERS, NUMBERS, PATHS, JSONISH, CRAFTED)
LONG = (
    "\u0301\u0316", "a", " ", "1", "(", "<", "A ", "a-", "'", "\u0301", "1,", "é", "\n", "ab ", "a.", "* ", "[",
    "\ufdfa", "_", "$",
)  # fmt: skip


def text(source: Source, most: int = 8, longest: int = 20_000) -> str:
    """A hostile text: fragments of every kind, sometimes one of them repeated many times."""
    return str(source.keep(_text(source, most, longest)))


def _text(source: Source, most: int, longest: int) -> str:
    pieces: list[str] = []
    glue = source.pick((" ", " ", "", "\n", ", "))
    for _ in range(source.below(most + 1)):
        kind = source.below(15)
        if kind < len(KINDS):
            pieces.append(source.pick(KINDS[kind]))
        elif kind == 11:
            pieces.append("".join(map(_character, [source] * source.between(1, 8))))
        elif kind == 12 and source.chance(8):
            pieces.append(source.pick(LONG) * source.between(1, 1 << source.between(1, 12)))
        else:
            pieces.append(source.pick(WORDS))
    made = glue.join(pieces)
    if made and source.chance(6):
        at = source.below(len(made))
        made = made[:at] + source.pick(("", made[at:][::-1], made[:at], made[at:].upper()))
    if source.chance(12):
        made = made.translate(OTHER_CASE)
    return made[:longest]


def _character(source: Source) -> str:
    return chr(source.pick((source.below(128), source.below(0x3000), source.below(0x110000))))


def name(source: Source) -> str:
    """A short text, as names, ids and sources are."""
    return text(source, 2, 300)


def value(source: Source, depth: int = 3) -> Any:
    """Any JSON value, and some that JSON does not allow."""
    kind = source.below(10 if depth else 7)
    if kind == 0:
        return source.pick((None, True, False, float("nan"), float("inf"), -0.0))
    if kind == 1:
        return source.pick((0, -1, 1, 2**63, -(2**70), 10**400, 1.5, 1e308))
    if kind < 7:
        return name(source)
    if kind == 7:
        return source.some(lambda: value(source, depth - 1), 4)
    return {name(source): value(source, depth - 1) for _ in range(source.below(5))}


def spoiled(source: Source, whole: Any, one_in: int = 12) -> Any:
    """The value with parts of it missing, or replaced by anything."""
    if source.chance(one_in):
        return value(source)
    if isinstance(whole, dict):
        return {k: spoiled(source, v, one_in) for k, v in whole.items() if not source.chance(2 * one_in)}
    if isinstance(whole, list):
        return [spoiled(source, v, one_in) for v in whole]
    return whole


def json_line(source: Source, shape: dict[str, Any]) -> str:
    """A row of this shape as JSON, with any of it replaced, missing, repeated or cut."""
    row = {key: value(source) if source.chance(4) else made for key, made in shape.items() if not source.chance(8)}
    if source.chance(5):
        row[name(source)] = value(source)
    line = json.dumps(row if not source.chance(12) else value(source), ensure_ascii=source.chance(2))
    if source.chance(5):
        at = source.below(len(line) + 1)
        line = line[:at] + source.pick(("", text(source, 2), line[at + 1 :], '"', "[" * 5000, "\n"))
    return line


def data(source: Source, lines: list[str]) -> bytes:
    """Lines as a file's bytes, sometimes damaged."""
    raw = source.pick(("\n", "\n", "\r\n", "\r", "\u2028")).join(lines).encode("utf-8", "surrogatepass")
    return damaged(source, raw) if source.chance(4) else bytes(source.keep(raw))


def damaged(source: Source, raw: bytes) -> bytes:
    """The bytes with some of them changed, removed, repeated or moved."""
    made = bytearray(raw)
    for _ in range(source.between(1, 6)):
        at = source.below(len(made) + 1)
        length = 1 << source.below(8)
        action = source.below(6)
        if action == 0 and made:
            made[at - 1] = source.below(256)
        elif action == 1:
            del made[at : at + length]
        elif action == 2:
            made[at:at] = made[at : at + length]
        elif action == 3:
            made[at:at] = source.pick((b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80" * 9, b"\x1f\x8b", b"9" * 40))
        elif action == 4:
            del made[at:]
        else:
            made[at : at + 4] = source.below(1 << 32).to_bytes(4, "big")
    return bytes(source.keep(bytes(made)))
