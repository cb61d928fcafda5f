"""Origins by name, in the form that is compared: an address, a file, or any other label.

Spellings that lead to the same page or file are one name. What a server or a file system may tell apart (the query, the
path's letter case) stays apart: joining it would let the author of one page join the group of another.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from urllib.parse import unquote

from robustrag_integrations.normalise import few_marks
from robustrag_integrations.origins.addresses import address_name, host_of, resolved

_WEB = re.compile(r"(?:https?|wss?|ftps?):[/\\]*(?=[^/\\])", re.IGNORECASE)
_FILE = re.compile(r"file:(?://(?:localhost(?=/))?|(?=/|[a-z]:[/\\]))", re.IGNORECASE)  # file:///a, file:/a
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
# "x.com/a" without a scheme. A name without anything behind it may be a file ("notes.md") and is compared as it is.
_BARE = re.compile(
    r"(?:(?:[^\W_](?:[\w-]*[^\W_])?\.)+(?:[^\W\d_]{2,63}|xn--[\w-]+)\.?|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?[/?#]"
)
_LONGEST_HOST = 300
_PLACE_IN_FILE = re.compile(r"#[A-Za-z_]+=[^/#]*$")  # report.pdf#page=3
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")


@dataclass(frozen=True)
class Origin:
    """Who controls a text, as its metadata says.

    Attributes:
        name: for an address `host[:port]/path[?query]`, for a file its path with forward slashes, else the label.
        host: of an address; None for anything else.
        given: as metadata spells it.
        is_document: whether it is a framework's id of a document, as metadata names nothing.
    """

    name: str
    host: str | None = None
    given: str = field(default="", compare=False)
    is_document: bool = field(default=False, compare=False)

    @property
    def page(self) -> str:
        """The name without an address's query."""
        return self.name if self.host is None else self.name.partition("?")[0]


def origin_named(text: str, *, is_file: bool = False) -> Origin | None:
    """The origin that a text names, None for an empty one.

    Args:
        text: as metadata has it.
        is_file: whether it is known to be a path, so that "x.com/a" is a folder.
    """
    given = text.strip()
    name, is_address = _name(given, is_file)
    return Origin(name, host_of(name) if is_address else None, given) if name else None


def _name(text: str, is_file: bool) -> tuple[str | None, bool]:
    """The name, and whether it is an address."""
    if match := _WEB.match(text):
        return address_name(text[match.end() :]), True
    if match := _FILE.match(text):
        return _file_name(unquote(text[match.end() :].partition("#")[0].partition("?")[0])), False
    if match := _SCHEME.match(text):
        return f"{match[1].lower()}://{text[match.end() :]}", False  # s3://bucket/key: another space of names
    if not is_file and (text.startswith("//") or _BARE.match(_PLACE_IN_FILE.sub("", text)[:_LONGEST_HOST])):
        return address_name(text.lstrip("/")), True
    return _file_name(text), False


def _file_name(text: str) -> str:
    """A path without detours; labels that are no paths ("Anna Lind") stay as they are."""
    path = unicodedata.normalize("NFC", few_marks(_PLACE_IN_FILE.sub("", text))).replace("\\", "/")
    if path.startswith("/") and _DRIVE.match(path, 1):
        path = path[1:]  # file:///C:/...
    windows = bool(_DRIVE.match(path)) or text.startswith("\\\\")
    rooted = "/" if path.startswith("/") else ""
    name = rooted + "/".join(resolved(path.split("/"), rooted=bool(rooted) or windows))
    return name.lower() if windows else name  # Windows does not tell cases apart
