"""Origins: whose text a passage is, read off its metadata, in the form in which spellings of one name are equal.

All of it is a function of one passage's metadata alone. Spellings that lead to the same page or file are one name.
What a server or a file system may tell apart (the query, the path's letter case) stays apart: joining it would let the
author of one page join the source of another.

The owner of a page is read off its host, so the host is read as every URL library reads it, or not at all. It is cut
off before anything is decoded (RFC 3986, 3.2), and nothing that is decoded later, from percent signs, full-width
letters or by IDNA, may yield a delimiter. What libraries refuse, or read in different ways, has no host: a backslash, a
second "@", control characters, labels that are no names.

Left out of an address: the scheme, user and password, a leading "www.", the ports 80 and 443, the fragment, tracking
parameters, session ids, S3's and Google's signatures, empty and dotted path segments, the page of a document
(`a.pdf:3`). Kept: every other part of the query, which may choose the page.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from numbers import Number
from pathlib import PurePath
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode

from robustrag_integrations._util.errors import INTERRUPTS, missing
from robustrag_integrations._util.normalise import few_marks

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
_AUTHORITY = re.compile(r"(?:[!-?A-Z^-~]*@)?(\[[0-9A-Fa-f:.]+\]|[^@:\[\]\\]+)(?::([0-9]{0,9}))?")  # user@host:port
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_LONGEST_HOST = 253  # characters of a domain
_PAGE = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,4}):[0-9]{0,6}$")  # a.pdf:3
_SESSION = re.compile(r";jsessionid=[^/]*", re.IGNORECASE)
_UNESCAPED = "!$&'()*+,;=:@-._~"  # what a path segment holds without being escaped
_TRACKING = frozenset((
    "_ga", "_gl", "_hsenc", "_hsmi", "aspsessionid", "dclid", "fbclid", "gad_source", "gbraid", "gclid", "gclsrc",
    "igsh", "igshid", "jsessionid", "mc_cid", "mc_eid", "mkt_tok", "msclkid", "phpsessid", "ref_src", "ref_url",
    "sessionid", "srsltid", "ttclid", "twclid", "wbraid", "yclid",
))  # fmt: skip
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "matomo_", "hsa_", "x-amz-", "x-goog-")
# What the loaders, readers and stores of LangChain and LlamaIndex write: the file, then the address, then ids. `source`
# is first: loaders write it last, over whatever the properties of a PDF or the fields of a row are called.
_NAME_FIELDS = (
    "source", "file_path", "url", "link", "source_url", "uri", "source_uri", "href", "permalink", "web_url", "html_url",
    "page_url", "document_url", "document_uri", "path", "source_path", "metadata_storage_path", "file_name",
    "source_file", "doc_name", "document_name",
)  # fmt: skip
# Whole files are told apart by the store's id of each; ids of documents may be those of its pages.
_FILE_ID, _ID_FIELDS = "file_id", ("document_id", "ref_doc_id", "doc_id")
FIELDS = (*_NAME_FIELDS, _FILE_ID, *_ID_FIELDS)
_FILE_FIELDS = frozenset({"file_path", "path", "source_path", "file_name", "source_file", "doc_name", "document_name"})
_MOST_LEVELS = 50

NO_HOST = "an address without a valid host"  # the one name of all of these: whoever makes them up has one vote

Kind = Literal["address", "file", "name", "id"]
ADDRESS, FILE, NAME, ID = get_args(Kind)


@dataclass(frozen=True)
class Origin:
    """The party that controls a text, as its metadata says.

    Votes are counted by name.

    Attributes:
        name: for an address `host[:port]/path[?query]`, for a file its path with forward slashes, else the label.
            `NO_HOST` for an address whose host URL libraries refuse or read in different ways.
        host: of an address, with a scheme or without, "" with `NO_HOST`; None for anything else.
        given: as metadata spells it.
        kind: `address` with `http:` or `https:`, `file` for a path by its entry or scheme, `id` for a framework's id of
            a document, which names nobody; `name` for anything else.
        file_id: the store's id of the file. Files of one name and other ids are other files.
    """

    name: str
    host: str | None = None
    given: str = field(default="", compare=False)
    kind: Kind = field(default=NAME, compare=False)
    file_id: str | None = None

    @property
    def key(self) -> str | tuple[str, str]:
        """What has a vote: the name, and the id of the file where there is one."""
        return self.name if self.file_id is None or self.name == NO_HOST else (self.name, self.file_id)

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


Named = tuple[str, Origin]
"""An entry, as metadata spells it, and the origin that it names."""


def names_in(metadata: Mapping[str, Any], first: str = "source") -> list[Named]:
    """Return the entries that name an origin, in the order of `FIELDS`, before all of them `first`: the first counts.

    Outer entries come before those of mappings within (`location.s3Location.uri`, `_source`); where an outer one names
    something, those within are not looked at. A number comes last, as it is mostly that of a page. An id counts only
    where nothing else does, and alone; but that of a file tells files of one name apart.
    """
    if type(metadata) is dict and not metadata:
        return []
    fields = (first, *(name for name in _NAME_FIELDS if name != first))
    levels = _levels(metadata)
    found = list(entries_in(metadata, fields))
    found = found or [named for level in levels[1:] for named in entries_in(level, fields)]
    found.sort(key=lambda named: named[1].name.isdecimal())
    ids_of_files = [
        (key, (label(level[key]) or "").strip())
        for level in levels
        for key in sorted((k for k in level if _plain(k) == _plain(_FILE_ID)), key=lambda k: (k != _FILE_ID, k))
    ]
    if file := next(((key, Origin(name, given=name)) for key, name in ids_of_files if name), None):
        return [(key, replace(origin, file_id=file[1].name)) for key, origin in found or [file]]
    ids = (named for level in levels for named in entries_in(level, _ID_FIELDS))
    return found or [(key, replace(origin, kind=ID)) for key, origin in ids][:1]


def entries_in(metadata: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Named]:
    """Yield the entries of these names, in any spelling ("URL", "fileName"), that name something; exact ones first."""
    ranks = _ranks(tuple(fields))
    spelled = ((key, ranks.get(key) if key in ranks else ranks.get(_plain(key))) for key in metadata)
    keys = [(rank, key != fields[rank], key) for key, rank in spelled if rank is not None]
    for rank, _, key in sorted(keys, key=lambda found: found[:2]):
        named = label(metadata[key])
        if named is not None and (origin := origin_named(named, is_file=fields[rank] in _FILE_FIELDS)) is not None:
            yield key, origin


@cache
def _ranks(fields: tuple[str, ...]) -> dict[str | None, int]:
    return {name: rank for rank, field in enumerate(fields) for name in (field, _plain(field))}


def _levels(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    levels = [metadata]
    for level in levels:
        levels += [value for value in level.values() if isinstance(value, Mapping)][: _MOST_LEVELS - len(levels)]
    return levels


def is_origin_field(key: str) -> bool:
    """True if an entry of this name, in any spelling, may name an origin."""
    return _plain(key) in _PLAIN_FIELDS


def _plain(key: object) -> str | None:
    return key.lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(key, str) else None


_PLAIN_FIELDS = frozenset(map(_plain, FIELDS))


def label(value: object) -> str | None:
    """The name that a value is: a text, a number or a path as str. None for anything else, for NaN and for nothing."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return str.__str__(value) or None
        named = isinstance(value, (Number, PurePath)) and not isinstance(value, bool) and bool(value == value)
        return str(value) if named else None
    except INTERRUPTS:
        raise
    except BaseException:  # a number that cannot be compared or written out
        return None


def origin_named(text: str, *, is_file: bool = False) -> Origin | None:
    """Return the origin that a text of metadata names, None for an empty one; of a file, "x.com/a" is a folder."""
    given = text.lstrip(_BEFORE_ADDRESSES).strip()
    host: str | None = None
    kind: Kind = NAME
    if match := _WEB.match(given):
        rest = given[match.end() :]
        if not rest.startswith("//"):
            rest = rest.replace("\\", "/")  # only browsers read a host in it, and this is how
        name, host = _address(rest.lstrip("/")) or (NO_HOST, "")
        kind = ADDRESS if given[:4].lower() == "http" else NAME
    elif match := _FILE.match(given):
        name, kind = _file_name(unquote(given[match.end() :].partition("#")[0].partition("?")[0])), FILE
    elif match := _SCHEME.match(given):  # s3://bucket/key: another space of names
        name = f"{match[1].lower()}{match[2]}{_whole_file(match[3])}"
    elif not is_file and (given.startswith("//") or _BARE.match(_whole_file(given)[:_LONGEST_BARE])):
        name, host = _address(given.lstrip("/")) or (NO_HOST, "")
    else:
        name, kind = _file_name(given), FILE if is_file else NAME
    return Origin(name, host, given, kind) if name else None


def _whole_file(text: str) -> str:
    """A path without the place in the file: report.pdf#page=3, report.pdf:3."""
    return _PAGE.sub(r"\1", _PLACE_IN_FILE.sub("", text))


def _file_name(text: str) -> str:
    """A path without detours; labels that are no paths ("Anna Lind") stay as they are."""
    path = unicodedata.normalize("NFC", few_marks(_whole_file(text))).replace("\\", "/")
    if path.startswith("/") and _DRIVE.match(path, 1):
        path = path[1:]  # file:///C:/...
    windows = bool(_DRIVE.match(path)) or text.startswith("\\\\")
    rooted = "/" if path.startswith("/") else ""
    name = rooted + "/".join(_resolved(path.split("/"), rooted=bool(rooted) or windows))
    return name.lower() if windows else name  # Windows does not tell cases apart


def _address(text: str) -> tuple[str, str] | None:
    text = re.sub(r"[\t\r\n]", "", text).partition("#")[0]  # as browsers and urllib read it
    where, _, query = text.partition("?")
    authority, _, path = where.partition("/")
    match = _AUTHORITY.fullmatch(authority)
    host, port = (host_name(match[1]), int(match[2] or 0)) if match else (None, 0)
    if host is None or port >= 1 << 16:
        return None
    segments = _SESSION.sub("", _PAGE.sub(r"\1", path).replace("\\", "/")).split("/")
    page = "/".join(_resolved((quote(unquote_to_bytes(part), safe=_UNESCAPED) for part in segments), rooted=True))
    kept = sorted(pair for pair in parse_qsl(query, keep_blank_values=True) if not _tracks(pair[0].lower()))
    name = host + (f":{port}" if port not in (0, 80, 443) else "")
    return name + (f"/{page}" if page else "") + (f"?{urlencode(kept)}" if kept else ""), host


def host_name(host: str) -> str | None:
    """Return a host in lower case and ASCII (IDNA), without "www." and a final dot; None if it is no host.

    "ß" is not "ss". Numbers are the IPv4 address that systems read them as: 127.1, 0x7f000001.
    """
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return None
        return f"[{address.compressed}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)
    if len(host) > 12 * _LONGEST_HOST:  # a letter may be escaped as twelve characters
        return None
    host = unquote(host).lower()
    if not host.isascii() or "xn--" in host:
        import idna

        try:
            host = idna.encode(host, uts46=True).decode()
        except UnicodeError:
            return None
    host = host.removesuffix(".")
    if len(host) > _LONGEST_HOST or not _HOST.fullmatch(host):
        return None
    with suppress(OSError):
        return str(ipaddress.IPv4Address(socket.inet_aton(host)))
    return host[4:] if host.startswith("www.") and host.count(".") > 1 else host


def _resolved(segments: Iterable[str], *, rooted: bool) -> list[str]:
    found: list[str] = []
    for segment in segments:
        if segment == ".." and found and found[-1] != "..":
            found.pop()
        elif segment not in ("", ".") and not (segment == ".." and rooted):
            found.append(segment)
    return found


def _tracks(name: str) -> bool:
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)


def site_of(origin: Origin) -> str | tuple[str, str]:
    """Return the registrable domain of an address (`news.x.co.uk/a` is of `x.co.uk`); anything else is its own site.

    Hosts under which anybody can have a name (`github.io`) are one site, as are those under a domain of which the list
    has no ending (the last two names). That of an IPv6 address is its network of 64 bits: who has one has all.
    """
    extract, host = site_extractor(), origin.host
    if not host:
        return origin.key
    if host.startswith("["):
        return str(ipaddress.IPv6Network((host.strip("[]"), 64), strict=False))
    found = extract(host)
    if found.suffix:
        return f"{found.domain}.{found.suffix}" if found.domain else host
    labels = host.split(".")
    return host if labels[-1].isdigit() else ".".join(labels[-2:])


@cache
def site_extractor() -> Any:
    """Return tldextract with the list that it ships; nothing is downloaded and nothing is written."""
    try:
        library = import_module("tldextract")
    except ImportError as error:
        raise missing("group_by='site' needs tldextract", "site") from error
    return library.TLDExtract(suffix_list_urls=(), cache_dir=None)
