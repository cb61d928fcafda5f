"""Leaves out of a Markdown text or a page what docs/guide/command-line.md lists as hidden, and no more.

Takes time linear in the text.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable

from robustrag_integrations._util.display import UNSEEN

_LONGEST_TAG = 4000  # characters
_LONGEST_CODE = 2000  # characters within a line
_INVISIBLE = re.compile(f"[{UNSEEN}]+")
_NEXT = re.compile(r"<(?=[A-Za-z/!])|(?P<block>^ {0,3}(?:`{3,}|~{3,}))|`+", re.M)
_STOP = re.compile(r"""(?:=\s*)?["']|>""")  # a mark of quotation behind a "=" begins a value
_NAME = re.compile(r"</?([A-Za-z][^\s<>/]*)")
_UNDRAWN = frozenset({"script", "style", "template"})
_VOID = frozenset(  # without an end
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_HIDDEN = re.compile(r"""[\s"'/]hidden(?=[\s=/>])|[\s"'/]color\s*=\s*["']?(?:white|#f{3,6})\b""", re.I)
_STYLE = re.compile(r"""[\s"'/]style\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*))""", re.I)
_UNSEEN_STYLE = re.compile(
    r"display:none|visibility:hidden|(?:^|;)opacity:0?(?:\.0\d*)?(?:[;!]|$)|transform:scale\(0"
    r"|font-size:(?:0(?![.\d])|[01](?:\.\d+)?p[xt])|(?:left|top|text-indent):-\d{3}|clip:rect\([01](?:px)?,"
    r"|^(?=.*overflow:(?:hidden|clip)).*(?:^|;)(?:max-)?(?:height|width):[01](?:px)?(?:[;!]|$)"
    r"|(?:^|;)color:(?:transparent|rgba\([^)]*,0?(?:\.0\d*)?\))"
    r"|(?:^|;)color:(?:white|#f{3,6}\b|rgba?\(255,255,255)(?!.*(?:^|;)background)"
)


def without_invisible(text: str) -> tuple[str, int]:
    """Return a text without tag characters and variation selectors, and how many runs of them are left out."""
    return _INVISIBLE.subn("", text) if not text.isascii() else (text, 0)


def without_hidden(text: str) -> tuple[str, int]:
    """Return a text without comments and hidden elements, and how many are left out; code stays as it is.

    An element that is hidden and has no end hides all that follows, as in a browser.
    """
    kept: list[str] = []
    end_of_tag = _ends_of_tags(text)
    left_out = begun = at = 0
    while match := _NEXT.search(text, at):
        start = match.start()
        if match[0] != "<":
            at = _end_of_code(text, match)
            continue
        if text.startswith("<!--", start):
            at = _after(text, "-->", start + 4)
        else:
            end = end_of_tag(start)
            at = end or start + 1
            if not end or not is_hidden(text[start:end]):
                continue
            at = _end_of_element(text, end, _NAME.match(text, start))
        kept.append(text[begun:start])
        begun = at
        left_out += 1
    return "".join([*kept, text[begun:]]), left_out


def _after(text: str, ending: str, at: int) -> int:
    found = text.find(ending, at)
    return len(text) if found < 0 else found + len(ending)


def _end_of_code(text: str, match: re.Match[str]) -> int:
    """Return where a block or span of code ends; the end of its first mark if it is none."""
    mark, at = match[0].lstrip(), match.end()
    if match["block"]:
        return _after(text, f"\n{mark}", at)
    end = text.find(mark, at, at + _LONGEST_CODE)
    return at if end < 0 or "\n\n" in text[at:end] else end + len(mark)


def _ends_of_tags(text: str) -> Callable[[int], int]:
    """Return a function from where a tag begins to where it ends, a ">" in a quoted value passed over; 0 if nowhere.

    Where a tag ends depends on what follows alone, so that it is found once for every place, from the text's end on.
    """
    stops = [*_STOP.finditer(text)]
    places = [stop.end() for stop in stops]
    ends = [0] * (len(stops) + 1)  # of a tag that is open, and in no value, before each stop
    following = {'"': len(stops), "'": len(stops)}  # the place after the next stop with this mark
    for place in range(len(stops) - 1, -1, -1):
        mark = stops[place][0][-1]
        if mark == ">":
            ends[place] = places[place]
            continue
        ends[place] = ends[following[mark] if len(stops[place][0]) > 1 else place + 1]
        following[mark] = place + 1

    def end_of(start: int) -> int:
        end = ends[bisect_right(places, start)]
        return end if end - start <= _LONGEST_TAG else 0

    return end_of


def is_hidden(tag: str) -> bool:
    """True if a start tag says that its element is not to be seen."""
    name = _NAME.match(tag)
    if name is None or tag.startswith("</") or name[1].lower() in _VOID:
        return False
    if name[1].lower() in _UNDRAWN:
        return True
    attributes = tag[name.end() :]
    style = next(("".join(filter(None, found)) for found in _STYLE.findall(attributes)), "")
    plain = re.sub(r"/\*.*?\*/|\s", "", html.unescape(style), flags=re.S).lower()
    return bool(_HIDDEN.search(_STYLE.sub(" ", attributes)) or _UNSEEN_STYLE.search(plain))


def _end_of_element(text: str, at: int, name: re.Match[str] | None) -> int:
    """Return where an element ends, those of its name within it counted."""
    if name is None:
        return at
    depth = 1
    for tag in re.compile(rf"<(/?){re.escape(name[1])}(?=[\s/>])[^<>]{{0,{_LONGEST_TAG}}}>?", re.I).finditer(text, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return len(text)
