"""Hosts: ours is the one that every URL library reads, or the source is of the kind that has none."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from robustrag_integrations import CallableModel, MajorityVoting, Passage, isolate
from robustrag_integrations.grouping.origins import NO_HOST, host_name, origin_named

idna = pytest.importorskip("idna")
PARSERS: dict[str, Callable[[str], str | None]] = {"urllib": lambda url: urlsplit(url).hostname}
try:
    import httpx

    PARSERS["httpx"] = lambda url: httpx.URL(url).raw_host.decode("ascii")
except ImportError:
    pass
try:
    import yarl

    PARSERS["yarl"] = lambda url: yarl.URL(url).raw_host
except ImportError:
    pass
try:
    from urllib3.util import parse_url

    PARSERS["urllib3"] = lambda url: parse_url(url).host
except ImportError:
    pass

# %s stands for a delimiter in some disguise, behind it the domain of whoever writes the address.
DISGUISED = [
    *("%2f", "%2F", "%3f", "%23", "%3a80", "%3A", "%5c", "%40", "%252f", "%25252f", "%00", "%0a", "%20", "%09x"),
    *("／", "＃", "？", "：", "：80", "＠", "＼", "﹖", "﹟", "﹫", "﹕", "⁈", "⁉", "℀", "℁", "℅", "℆", "｜", "％2f"),
    *("%EF%BC%8F", "%ef%bc%a0", "%E2%84%80", "\\", "\\@", "@x@", "\x00", "\x01", "\x1f", "\x7f", " ", "<", "^", "|"),
    *("․", "‥", "⒈", "\u202e", "%2e%2f", "[", "]", "[::1]", ":80:", "::", ":80%2f", ":x", ":99999", ":1e3", ":８０"),
]


def hosts_by_library(url: str) -> dict[str, str]:
    """By library the host that it reads, in the spelling that is compared; none where it refuses."""
    found = {}
    for name, parse in PARSERS.items():
        try:
            host = parse(url)
        except Exception:
            continue
        if host:
            found[name] = spelling(host)
    return found


def spelling(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host.strip("[]"))
        return str(address.ipv4_mapped or f"[{address.compressed}]")
    except ValueError:
        pass
    host = unquote(host).lower()
    try:
        host = host if host.isascii() else idna.encode(host, uts46=True).decode()
        return socket.inet_ntoa(socket.inet_aton(host.removesuffix(".")))
    except (OSError, ValueError):
        host = host.removesuffix(".")
        return host.removeprefix("www.") if host.count(".") > 1 else host


def check(url: str) -> None:
    origin = origin_named(url)
    assert origin is not None
    assert (origin.host == "") == (origin.name == NO_HOST)
    if origin.host:
        read = hosts_by_library(url)
        assert set(read.values()) == {origin.host}, (url, read)


@pytest.mark.parametrize("scheme", ["http://", "https://", "HTTP://", "ftp://", "//"])
@pytest.mark.parametrize("disguised", DISGUISED)
def test_no_disguise_of_a_delimiter_makes_a_host(disguised: str, scheme: str) -> None:
    for host in (f"n1.com{disguised}.evil.com", f"n1.com{disguised}evil.com", f"evil.com{disguised}n1.com"):
        origin = origin_named(f"{scheme}{host}/p")
        assert origin is not None
        if origin.name != NO_HOST:
            assert origin.host is not None
            assert hosts_by_library(f"http:{scheme[-2:]}{host}/p") == dict.fromkeys(PARSERS, origin.host)
            assert not origin.host.endswith("n1.com")


WORDS = st.sampled_from(
    ["n1", "com", "evil", "www", "co", "uk", "a_b", "ß", "münchen", "xn--mnchen-3ya", "xn--a", "1", "0x7f", "256", "ﬀ"]
)
PIECES = st.one_of(
    WORDS, st.just("."), st.sampled_from(DISGUISED), st.sampled_from(list("/?#@:%-_~!$&;=+,")), st.characters()
)


@given(st.sampled_from(["http://", "https://"]), st.lists(PIECES, min_size=1, max_size=9).map("".join))
@settings(max_examples=1500, deadline=None)
def test_the_host_is_what_every_library_reads_or_there_is_none(scheme: str, rest: str) -> None:
    url = f"{scheme}{rest.lstrip('/')}".strip()  # of "http:///n1.com" browsers alone read a host
    if url.rstrip(" /\\\t\r\n") == scheme.rstrip("/"):  # nothing behind the scheme
        return
    origin = origin_named(url)
    if origin is not None and origin.host is not None:
        check(url)


@pytest.mark.parametrize(
    "host", ["a" * 64 + ".com", "a." * 127 + "com", "%6e" * 2000, "a..com", ".com", "-%", "xn--", "[::1", "[v1.x]"]
)
def test_what_is_no_name_is_no_host(host: str) -> None:
    assert host.startswith("[") or host_name(host) is None
    assert origin_named(f"http://{host}/") == origin_named("http://n1.com%2f.evil.com")


# Votes

HONEST = [Passage(f"yes {i}", origin=f"https://honest{i}.com/p") for i in range(5)]


@pytest.mark.parametrize("disguised", ["%2f", "%3f", "%23", "%3a80", "／", "＃", "%40", "%5c", "％2f", "%252f"])
def test_hosts_in_disguise_are_one_site_with_a_warning_and_no_vote_of_others(disguised: str) -> None:
    pytest.importorskip("tldextract")
    evil = [Passage(f"lie {i}", origin=f"http://n{i}.com{disguised}.evil.com/p") for i in range(7)]
    sources = isolate([*HONEST, *evil], by="site")
    assert [len(source.passages) for source in sources] == [1] * 5 + [7]
    joining = [Passage(f"lie {i}", origin=f"http://honest{i}.com{disguised}.evil.com/p") for i in range(5)]
    assert [len(source.passages) for source in isolate([*HONEST, *joining], by="site")] == [1] * 5 + [5]

    model = CallableModel(lambda prompt: "Brezar" if "lie" in prompt else "Anna", samples=False)
    answer = MajorityVoting(model, group_by="site").answer("Who?", [*HONEST, *evil], choices=["Brezar", "Anna"])
    assert (answer.text, answer.radius) == ("Anna", 1)
    assert any("7 passages with addresses whose hosts" in warning for warning in answer.warnings)
