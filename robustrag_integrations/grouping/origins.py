"""Origins by name, in the form that is compared: an address, a file, or any other label.

Spellings that lead to the same page or file are one name. What a server or a file system may tell apart (the query, the
path's letter case) stays apart: joining it would let the author of one page join the group of another.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import unquote

from robustrag_integrations._util.normalise import few_marks
from robustrag_integrations.grouping.addresses import address_of, resolved, without_page

_WEB = re.compile(r"(?:https?|wss?|ftps?):(?=[/\\]*[^/\\])", re.IGNORECASE)
_FILE = re.compile(r"file:(?://(?:localhost(?=/))?|(?=/|[a-z]:[/\\]))", re.IGNORECASE)  # file:///a, file:/a
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*://)([^/]*)(.*)", re.IGNORECASE | re.DOTALL)
# "x.com/a" without a scheme. A name without anything behind it may be a file ("notes.md") and is compared as it is.
_BARE = re.compile(
    r"(?:(?:[^\W_](?:[\w%-]*[^\W_])?\.)+(?:[^\W\d_]{2,63}|xn--[\w-]+)\.?|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?[/?#]"
)
_LONGEST_BARE = 300
_PLACE_IN_FILE = re.compile(r"#[A-Za-z_]+=[^/#]*$")
_BEFORE_ADDRESSES = "".join(map(chr, range(33)))  # control characters and spaces, which URL libraries pass over
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")

NO_HOST = "an address without a valid host"  # the one name of all of these: whoever makes them up has one vote

Kind = Literal["address", "file", "name", "id"]
ADDRESS, FILE, NAME, ID = get_args(Kind)


@dataclass(frozen=True)
class Origin:
    """The party that controls a text, as its metadata says.

    Votes are counted by name, so that all spellings of an address are one origin. Weights and tiers go by the kind,
    too: anybody can make a folder that is called like a host.

    Attributes:
        name: for an address `host[:port]/path[?query]`, for a file its path with forward slashes, else the label.
            `NO_HOST` for an address whose host URL libraries refuse or read in different ways.
        host: of an address, with a scheme or without, "" with `NO_HOST`; None for anything else.
        given: as metadata spells it.
        kind: `address` with `http:` or `https:`, `file` for a path by its entry or scheme, `id` for a framework's id of
            a document, which tells documents apart and names nobody; `name` for anything else.
    """

    name: str
    host: str | None = None
    given: str = field(default="", compare=False)
    kind: Kind = field(default=NAME, compare=False)

    @property
    def page(self) -> str:
        """The name without an address's query."""
        return self.name if self.host is None else self.name.partition("?")[0]

    def may_be(self, other: Origin) -> bool:
        """True if one of two names may be the other's ending ("a.pdf", "/data/a.pdf"), or is a number, as of a page."""
        long, short = (unquote(origin.page).casefold() for origin in (self, other))
        if len(long) < len(short):
            long, short = short, long
        same = self.given == other.given or long == short or long.endswith(f"/{short}")
        return same or long.isdecimal() or short.isdecimal()


def origin_named(text: str, *, is_file: bool = False) -> Origin | None:
    """Return the origin that a text names, None for an empty one.

    Args:
        text: as metadata has it.
        is_file: True if it is known to be a path, so that "x.com/a" is a folder.
    """
    given = text.lstrip(_BEFORE_ADDRESSES).strip()
    name, host, kind = _name(given, is_file)
    return Origin(name, host, given, kind) if name else None


def _name(text: str, is_file: bool) -> tuple[str, str | None, Kind]:
    """The name, the host of an address, and the kind."""
    if match := _WEB.match(text):
        rest = text[match.end() :]
        if not rest.startswith("//"):
            rest = rest.replace("\\", "/")  # only browsers read a host in it, and this is how
        return *(address_of(rest.lstrip("/")) or (NO_HOST, "")), ADDRESS if text[:4].lower() == "http" else NAME
    if match := _FILE.match(text):
        return _file_name(unquote(text[match.end() :].partition("#")[0].partition("?")[0])), None, FILE
    if match := _SCHEME.match(text):  # s3://bucket/key: another space of names
        return f"{match[1].lower()}{match[2]}{_whole_file(match[3])}", None, NAME
    if not is_file and (text.startswith("//") or _BARE.match(_whole_file(text)[:_LONGEST_BARE])):
        return *(address_of(text.lstrip("/")) or (NO_HOST, "")), NAME
    return _file_name(text), None, FILE if is_file else NAME


def _whole_file(text: str) -> str:
    """A path without the place in the file: report.pdf#page=3, report.pdf:3."""
    return without_page(_PLACE_IN_FILE.sub("", text))


def _file_name(text: str) -> str:
    """A path without detours; labels that are no paths ("Anna Lind") stay as they are."""
    path = unicodedata.normalize("NFC", few_marks(_whole_file(text))).replace("\\", "/")
    if path.startswith("/") and _DRIVE.match(path, 1):
        path = path[1:]  # file:///C:/...
    windows = bool(_DRIVE.match(path)) or text.startswith("\\\\")
    rooted = "/" if path.startswith("/") else ""
    name = rooted + "/".join(resolved(path.split("/"), rooted=bool(rooted) or windows))
    return name.lower() if windows else name  # Windows does not tell cases apart
