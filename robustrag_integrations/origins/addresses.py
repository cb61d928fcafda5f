"""Addresses of web pages: which spellings are the same page.

Left out: the scheme, user and password, a leading "www.", the ports 80 and 443, the fragment, tracking parameters,
session ids, signatures of storage (they differ each time somebody is let in), empty and dotted path segments. Kept:
every other part of the query, which may choose the page.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode

from robustrag_integrations.normalise import few_marks

_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(\d*))?")
_HOST = re.compile(r"\[[^\]]*\]|[^:/?]+")
_NUMBERS = tuple(
    (re.compile(digits), base)
    for digits, base in (("0x([0-9a-f]{0,40})", 16), ("0([0-7]{1,40})", 8), ("([0-9]{1,40})", 10))
)
_SESSION = re.compile(r";jsessionid=[^/]*", re.IGNORECASE)
# Characters that IDNA takes for none: a domain's owner may put any number of them into its name.
_PASSED_OVER = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2064\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)
_LIKE_NO_OTHER = frozenset("ß\u03c2")  # in a domain; case-folded they are "ss" and another sigma
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")  # dots that IDNA takes for one
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


def address_name(text: str) -> str | None:
    """An address without its scheme as `host[:port]/path[?query]`; None if no host is named."""
    text = re.sub(r"[\t\r\n]", "", text).replace("\\", "/")  # as browsers read it
    text = text.partition("#")[0]
    where, _, query = text.partition("?")
    authority, _, path = where.partition("/")
    match = _AUTHORITY.fullmatch(authority.rpartition("@")[2])
    host = host_name(match[1] if match else authority)
    if not host:
        return None
    port = (match[2] or "").lstrip("0") if match else ""
    named = host + (f":{port}" if port not in ("", "80", "443") else "")
    segments = (unquote_to_bytes(part) for part in _SESSION.sub("", path).split("/"))
    page = "/".join(resolved((quote(part, safe=_PLAIN) for part in segments), rooted=True))
    pairs = parse_qsl(query, keep_blank_values=True)
    signed = _signatures_in({name.lower() for name, _ in pairs})
    kept = sorted(pair for pair in pairs if not (_tracks(pair[0]) or pair[0].lower() in signed))
    return named + (f"/{page}" if page else "") + (f"?{urlencode(kept)}" if kept else "")


def host_of(name: str) -> str:
    """The host of what `address_name` gave."""
    found = _HOST.match(name)
    return found[0] if found else name


def host_name(host: str) -> str:
    """A host in lower case and in Unicode, without a leading "www." and a final dot.

    Full-width letters and "xn--" spellings are the letters they stand for. "ß" is not "ss": these are two domains.
    A number is the IPv4 address that browsers read it as.
    """
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host.strip("[]"))
        except ValueError:
            return host.lower()
        return f"[{address.compressed}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)
    text = unquote(host) if "%" in host else host
    folded = unicodedata.normalize("NFKC", few_marks(_lower(text.translate(_DOTS))))
    labels = [_decoded(_lower(label)) for label in folded.strip(". ").split(".")]
    if len(labels) > 2 and labels[0] == "www":
        labels = labels[1:]
    return _ipv4_address(labels) or ".".join(labels)


def is_ip_address(host: str) -> bool:
    """Whether a `host_name` is an address of numbers."""
    return host.startswith("[") or _number(host.rpartition(".")[2]) is not None


def _ipv4_address(labels: Sequence[str]) -> str | None:
    """The IPv4 address of numbers, of which the last may stand for several: 127.1, 0x7f.0.0.1, 2130706433."""
    numbers = [number for label in labels if (number := _number(label)) is not None]
    if not len(labels) == len(numbers) <= 4:
        return None
    *first, last = numbers
    if max(first, default=0) > 255 or last >= 256 ** (4 - len(first)):
        return None
    return str(ipaddress.IPv4Address(sum(n << 8 * (3 - i) for i, n in enumerate(first)) + last))


def _number(label: str) -> int | None:
    """A label of a host as a number, which may be hexadecimal or octal; None for any other label."""
    for digits, base in _NUMBERS:
        if match := digits.fullmatch(label):
            return int(match[1] or "0", base)
    return None


def resolved(segments: Iterable[str], *, rooted: bool) -> list[str]:
    """Path segments without empty ones, "." and "..": a path that leads to the same place."""
    found: list[str] = []
    for segment in segments:
        if segment == ".." and found and found[-1] != "..":
            found.pop()
        elif segment not in ("", ".") and not (segment == ".." and rooted):
            found.append(segment)
    return found


def _lower(text: str) -> str:
    letters = map(str.lower, _PASSED_OVER.sub("", text))  # one by one: what is no final sigma becomes none
    return "".join(c if c in _LIKE_NO_OTHER else c.casefold() for c in letters)


def _decoded(label: str) -> str:
    """A label of a host in Unicode."""
    if not label.startswith("xn--") or len(label) > 63:
        return label
    try:
        return unicodedata.normalize("NFKC", label[4:].encode("ascii").decode("punycode"))
    except (UnicodeError, ValueError, OverflowError):
        return label


def _signatures_in(names: set[str]) -> set[str]:
    """Those of these parameters that only say who was let in, and until when."""
    found: set[str] = set()
    for needed, others in _SIGNATURES:
        if needed <= names:
            found |= {name for name in names if name in others or f"{'-'.join(name.split('-')[:2])}-" in others}
    return found


def _tracks(name: str) -> bool:
    folded = name.lower()
    return folded in _TRACKING or folded.startswith(_TRACKING_PREFIXES)
