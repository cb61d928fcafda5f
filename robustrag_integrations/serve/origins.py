"""Web pages that may call the server from a browser."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+", re.I)


def checked_origins(origins: Iterable[str]) -> list[str]:
    """Addresses of web pages, as browsers name them in the Origin header.

    Raises:
        ValueError: one is neither "*" nor of the form http://host:port.
    """
    pages = [origins] if isinstance(origins, str) else list(origins)
    for page in pages:
        if page != "*" and not _ORIGIN.fullmatch(page):
            raise ValueError(
                f"{page!r:.80} is no origin of a web page: it must read http://host or https://host, with the "
                "port if it has one and nothing after it, or be * for any"
            )
    return pages
