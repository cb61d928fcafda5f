"""The check of a text that words an agreed answer: it says the answer, and nothing else. And links in answers.

A model that is asked to put "30 days" into a sentence may write "1 day", "not 30 days", or add a link. So its text is
shown only if the answer stands in it once, and every other word is one of the question's or a function word. A word
that could turn the meaning (a negation, a number, a name, "only", "before") is neither, unless the question has it.
"""

from __future__ import annotations

import re

from robustrag_integrations._util.display import UNSEEN
from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.text.languages import NEGATIONS, WORDS, language_of

_LONGEST = 600  # characters of a text
_SIGN = re.compile(r"[<>=%€$£~^|{}\[\]\\/@#&+]")
_ENDS = " \t\n.,;:!?*_\"'`“”„«»()"
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


def says_only(text: str, agreed: str, question: str) -> bool:
    """True if a text that a model wrote says an agreed answer and nothing else but words of the question.

    In a language without a list of function words nothing but those may stand beside the answer.
    """
    core = agreed.strip().rstrip(".,;")
    asked = plain_words(question).split()
    if not core or len(text) > _LONGEST + len(agreed) or links_in(text) or _denies(question, asked):
        return False
    begins = rf"(?<!\w){re.escape(core)}|\A[{re.escape(_ENDS)}]*{re.escape(core[:1].upper() + core[1:])}"
    found = [match.span() for match in re.finditer(rf"(?:{begins})(?!\w)", text)]
    if len(found) != 1:
        return False
    [(start, end)] = found
    before, after = text[:start], text[end:]
    if before[-1:] not in _ENDS or after[:1] not in _ENDS or _SIGN.search(before + after):  # "-30", "30/month"
        return False
    allowed = {*WORDS.get(f"function words {language_of(question)}", ()), *asked}
    return allowed.issuperset(plain_words(f"{before} {after}").split())


def _denies(question: str, words: list[str]) -> bool:
    """True if a question holds a negation, which a sentence may drop: "Which days are not paid?"."""
    return not NEGATIONS.isdisjoint(words) or re.search(r"n['’]t\b", question) is not None


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
