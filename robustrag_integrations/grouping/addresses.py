"""Web addresses in the form in which spellings of one page are equal.

The owner of a page is read off its host, so the host is read as every URL library reads it, or not at all. It is cut
off before anything is decoded ("the authority component is terminated by the next slash, question mark or number sign
character", RFC 3986, 3.2), and nothing that is decoded later, from percent signs, full-width letters or by IDNA, may
yield a delimiter. What libraries refuse, or read in different ways, has no host: a backslash, a second "@", control
characters, labels that are no names.

Left out of a name: the scheme, user and password, a leading "www.", the ports 80 and 443, the fragment, tracking
parameters, session ids, signatures of storage (they differ each time somebody is let in), empty and dotted path
segments, the page of a document (`a.pdf:3`). Kept: every other part of the query, which may choose the page.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode

_AUTHORITY = re.compile(r"(?:[!-?A-Z^-~]*@)?(\[[0-9A-Fa-f:.]+\]|[^@:\[\]\\]+)(?::([0-9]{0,9}))?")  # user@host:port
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_LONGEST_HOST = 253  # characters of a domain
_PAGE = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,4}):[0-9]{0,6}$")  # a.pdf:3
_SESSION = re.compile(r";jsessionid=[^/]*", re.IGNORECASE)
_PLAIN = "!$&'()*+,;=:@-._~"  # what a path segment holds without being escaped
# fmt: off
_TRACKING = frozenset((
    "__hsfp", "__hssc", "__hstc", "__s", "__twitter_impression", "_ga", "_gl", "_hsenc", "_hsmi", "_openstat",
    "aspsessionid", "cvid", "cx_click", "dclid", "dm_i", "ef_id", "epik", "fb_action_ids", "fb_action_types",
    "fb_ref", "fb_source", "fbclid", "gad_campaignid", "gad_source", "gbraid", "gclid", "gclsrc", "ghost_ref",
    "hsctatracking", "igsh", "igshid", "irclickid", "jsessionid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok",
    "ml_subscriber", "ml_subscriber_hash", "msclkid", "ns_campaign", "ns_mchannel", "ns_source", "oft_id",
    "oly_anon_id", "oly_enc_id", "phpsessid", "rb_clickid", "ref_src", "ref_url", "s_cid", "s_kwcid", "scid",
    "sessionid", "spm", "srsltid", "sscid", "tblci", "trk", "trkinfo", "ttclid", "twclid", "vero_conv", "vero_id",
    "wbraid", "wickedid", "wt.mc_id", "wt_mc", "yclid", "ysclid", "zanpid",
))
# fmt: on
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "matomo_", "hsa_", "itm_", "stm_")


# Parameters of a signed address, which is one if it has all of the first ones; "x-amz-" stands for all that begin so.
_SIGNATURES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(needed.split()), frozenset(f"{needed} {others}".split()))
    for needed, others in (
        ("x-amz-signature", "x-amz-"),
        ("x-goog-signature", "x-goog-"),
        ("awsaccesskeyid signature", "expires x-amz-security-token"),
        ("googleaccessid signature", "expires"),
        ("ossaccesskeyid signature", "expires security-token"),
        ("key-pair-id signature", "expires policy"),
        ("sig sv se", "st sp sr spr sip ske skoid sktid skt sks skv"),
    )
)


def address_of(text: str) -> tuple[str, str] | None:
    """Return an address without its scheme as `host[:port]/path[?query]`, and its host; None without a valid host."""
    text = re.sub(r"[\t\r\n]", "", text).partition("#")[0]  # as browsers and urllib read it
    where, _, query = text.partition("?")
    authority, _, path = where.partition("/")
    match = _AUTHORITY.fullmatch(authority)
    host, port = (host_name(match[1]), int(match[2] or 0)) if match else (None, 0)
    if host is None or port >= 1 << 16:
        return None
    segments = _SESSION.sub("", without_page(path).replace("\\", "/")).split("/")
    page = "/".join(resolved((quote(unquote_to_bytes(part), safe=_PLAIN) for part in segments), rooted=True))
    pairs = parse_qsl(query, keep_blank_values=True)
    signed = _signatures_in({name.lower() for name, _ in pairs})
    kept = sorted(pair for pair in pairs if not (_tracks(pair[0]) or pair[0].lower() in signed))
    name = host + (f":{port}" if port not in (0, 80, 443) else "")
    return name + (f"/{page}" if page else "") + (f"?{urlencode(kept)}" if kept else ""), host


def host_name(host: str) -> str | None:
    """Return a host in lower case and ASCII (IDNA), without a leading "www." and a final dot; None if it is no host.

    "ß" is not "ss": these are two domains. Numbers are the IPv4 address that systems read them as: 127.1, 0x7f000001.
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


def without_page(path: str) -> str:
    """Return a path without the page number that some stores write behind the file's ending."""
    return _PAGE.sub(r"\1", path)


def resolved(segments: Iterable[str], *, rooted: bool) -> list[str]:
    """Return path segments without empty ones, "." and "..": a path that leads to the same place."""
    found: list[str] = []
    for segment in segments:
        if segment == ".." and found and found[-1] != "..":
            found.pop()
        elif segment not in ("", ".") and not (segment == ".." and rooted):
            found.append(segment)
    return found


def _signatures_in(names: set[str]) -> set[str]:
    """Return those of these parameters that only say who was let in, and until when."""
    found: set[str] = set()
    for needed, others in _SIGNATURES:
        if needed <= names:
            found |= {name for name in names if name in others or f"{'-'.join(name.split('-')[:2])}-" in others}
    return found


def _tracks(name: str) -> bool:
    folded = name.lower()
    return folded in _TRACKING or folded.startswith(_TRACKING_PREFIXES)
