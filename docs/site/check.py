"""Looks at the built site: every link leads somewhere, and nothing is fetched from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
# Of <link>, these are addresses and are not fetched.
_NOT_FETCHED = {"canonical", "next", "prev", "alternate"}


class _Page(HTMLParser):
    """The links, fetched addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        key = FETCHED.get(tag)
        if key and found.get(key) and not _NOT_FETCHED & set((found.get("rel") or "").split()):
            self.fetched.append(str(found[key]))


def problems(folder: Path) -> list[str]:
    """What is wrong with a built site, a line each.

    Args:
        folder: its HTML.
    """
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html")) if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        found += [f"{name}: fetches {address}" for address in page.fetched if urlsplit(address).netloc]
        for address in [*page.links, *page.fetched]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                found.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {address} has no such place")
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
