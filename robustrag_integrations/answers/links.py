"""Links in answers: which addresses a text holds, and the text without them."""

from __future__ import annotations

import re

from robustrag_integrations._util.display import UNSEEN

_LOOKED_AT = 200_000  # characters of an answer
_MOST_LINKS = 200

_ADDRESS = re.compile(
    r"(?:(?:https?|ftp|wss?)://|(?<![\w/])//(?=\w[\w-]{0,62}\.)|\bwww\.|\b(?:mailto|data|javascript|file|blob):(?=\S))"
    r"[^\s<>\"'`\\|{}^]{1,4000}",
    re.I,
)
# "evil.example/q", "x.example:8080?q=1"; not "1.2.3.4/24", a network, and not within a path or an address of e-mail
_BARE = re.compile(
    r"(?<![\w@./\\-])(?:(?:\w(?:[\w-]{0,62}\w)?\.){1,20}[^\W\d_][\w-]{0,60}[^\W_]|(?:\d{1,3}\.){3}\d{1,3}(?!/\d\d?(?!\w)))\.?"
    r"(?::\d{1,5})?[/?#][^\s<>\"'`\\|{}^]{1,4000}"
)
_TARGET = re.compile(r"\]\(\s{0,9}<?((?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,4000})")
_ATTRIBUTE = re.compile(r"\b(?:src|href|poster|action)\s{0,9}=\s{0,9}[\"']?([^\s\"'<>]{1,4000})")
_DEFINED = re.compile(r"^[ \t]{0,9}\[[^\]\n]{1,200}\]:[ \t]{0,9}<?([^\s<>]{1,4000})", re.M)
_INVISIBLE = re.compile(f"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff{UNSEEN}]")
_LABELLED = re.compile(
    r"!?\[([^\[\]\n]{0,1000})\]\(\s{0,9}<?(?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,4000}(?:\s[^()\n]{0,200})?\)"
)
_LINK_SIGN = re.compile(r"[:/=?#]|www\.|\]\(", re.I)  # in every match of these
_TAIL = ".,;:!?'\"*_~)]"


def links_in(text: str) -> tuple[str, ...]:
    """Return the addresses in a text, in order and without repeats: bare ones, with a scheme or a path behind the
    host, and targets of Markdown and HTML. Characters that do not show are passed over."""
    looked_at = _INVISIBLE.sub("", text[:_LOOKED_AT])
    if _LINK_SIGN.search(looked_at) is None:
        return ()
    found = [(m.start(), m[0]) for m in _ADDRESS.finditer(looked_at)]
    found += [(m.start(), m[0]) for m in _BARE.finditer(_ADDRESS.sub(lambda m: " " * len(m[0]), looked_at))]
    for pattern in (_TARGET, _ATTRIBUTE, _DEFINED):
        found += [(m.start(1), m[1]) for m in pattern.finditer(looked_at)]
    bare = [address for _, link in sorted(found) if (address := _bare(link))]
    return tuple(dict.fromkeys(bare))[:_MOST_LINKS]


def without_links(text: str) -> str:
    """Return a short text without the addresses in it; of a Markdown link or image its label stays."""
    if not links_in(text):
        return text
    text = _LABELLED.sub(r"\1", _INVISIBLE.sub("", text))
    patterns = [_TARGET, _DEFINED, _ADDRESS, _BARE, *([_ATTRIBUTE] if "<" in text else [])]
    before = None
    while text != before:
        before = text
        for pattern in patterns:
            text = pattern.sub(" ", text)
    return text.strip()


def _bare(link: str) -> str:
    """The address without the punctuation that follows it; a bracket that it opened itself stays."""
    while link and link[-1] in _TAIL and not (link[-1] == ")" and link.count("(") >= link.count(")")):
        link = link[:-1]
    return link
