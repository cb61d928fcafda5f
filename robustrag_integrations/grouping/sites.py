"""The site of an address: the registrable domain, by the public suffix list that tldextract brings along."""

from __future__ import annotations

import ipaddress
from functools import cache
from importlib import import_module
from typing import Any

from robustrag_integrations.grouping.origins import Origin


def site_of(origin: Origin) -> str:
    """Return the registrable domain of an address (`news.x.co.uk/a` is of `x.co.uk`); anything else is its own site.

    Hosts under which anybody can have a name (`github.io`) are one site, since those names cost nothing. So are those
    under a domain of which the list has no ending: the last two names are taken, as the list's own rules say. The
    site of an IPv6 address is its network of 64 bits, since whoever has one of its addresses has all.

    Raises:
        ImportError: tldextract is not installed.
    """
    extract, host = site_extractor(), origin.host
    if not host:
        return origin.name
    if host.startswith("["):
        return str(ipaddress.IPv6Network((host.strip("[]"), 64), strict=False))
    found = extract(host)
    if found.suffix:
        return f"{found.domain}.{found.suffix}" if found.domain else host
    labels = host.split(".")
    return host if labels[-1].isdigit() else ".".join(labels[-2:])


@cache
def site_extractor() -> Any:
    """Return tldextract with the list that it ships; nothing is downloaded and nothing is written.

    Raises:
        ImportError: tldextract is not installed; the message names the extra.
    """
    try:
        library = import_module("tldextract")
    except ImportError as error:
        raise ImportError(
            "group_by='site' needs tldextract: pip install 'robustrag-integrations[site]'; or leave group_by out, "
            "which is by origin"
        ) from error
    return library.TLDExtract(suffix_list_urls=(), cache_dir=None)
