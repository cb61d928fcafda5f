"""Recognising that a response abstains (paper, Algorithm 1, line 6)."""

from __future__ import annotations

import re
import unicodedata

_PHRASE = re.compile(r"\bi (?:don't|do not|dont) know\b")
_QUOTED = re.compile(r'"[^"]*"')
_STRAIGHT = str.maketrans("’‘ʼ`´“”„«»", "'" * 5 + '"' * 5)
_BLANK = " \t\n\r\v\f\x1c\x1d\x1e\x1f\"'`.!*_"  # whitespace and the marks of an empty answer, in ASCII
_LOOKED_AT = 2000  # characters; an abstention is short, and a hostile response may be long


def is_abstention(response: str) -> bool:
    """Whether a response says that it does not know: empty, or holding "I don't know" or "I do not know".

    Case, curly apostrophes and line breaks make no difference. The phrase inside quotation marks is somebody's title
    or words, unless the whole response is that quotation. A function of this one response.
    """
    looked = response[:_LOOKED_AT]
    if looked.isascii() and "know" not in looked.lower():  # most responses: neither Unicode nor the phrase to look for
        return not looked.strip(_BLANK) and not response[_LOOKED_AT:].strip()
    return _says_so(looked, response[_LOOKED_AT:])


def _says_so(looked: str, rest: str) -> bool:
    text = unicodedata.normalize("NFKC", looked.translate(_STRAIGHT))
    text = " ".join(text.translate(_STRAIGHT).casefold().split())
    bare = text.strip(" \"'.!*_")
    if not bare:
        return not rest.strip()
    if _PHRASE.fullmatch(bare):
        return True
    return _PHRASE.search(_QUOTED.sub('""', text)) is not None
