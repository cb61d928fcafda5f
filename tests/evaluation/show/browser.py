"""A real browser that tells everything a page does: what it logs, asks for, and is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.needs import find_chromium, or_skip

_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Runs before the page's own script: a violation of the policy, and any function that an attack would call.
_WATCH = """
window.incidents = [];
document.addEventListener("securitypolicyviolation", (event) =>
  incidents.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
for (const name of ["alert", "confirm", "prompt", "open", "fetch"])
  window[name] = (...given) => { incidents.push(`${name}(${given})`); };
window.attacked = (what) => incidents.push(`attacked: ${what}`);
"""


@dataclass
class Visit:
    """A page in the browser.

    Attributes:
        page: playwright's.
        logged: messages on the console and uncaught errors.
        requests: addresses asked for, the page's own apart.
    """

    page: Any
    logged: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def incidents(self) -> list[str]:
        """Violations of the policy, and calls of what an attack would call."""
        found: list[str] = self.page.evaluate("window.incidents")
        return found

    def assert_harmless(self) -> None:
        """Nothing ran, nothing left, nothing was refused, nothing was complained about."""
        assert self.incidents == []
        assert self.logged == []
        assert self.requests == []

    def keep(self, path: Path) -> None:
        """A picture of the page's first metres for people, where SCREENSHOTS asks for them."""
        if "SCREENSHOTS" in os.environ:
            size = {"width": self.page.viewport_size["width"], "height": 3000}
            self.page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, **size})

    def fits(self) -> bool:
        """Whether the page is no wider than its window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def unfold(self, *words: str) -> str:
        """Open everything, and return the text of the first row of the list that has all of these words."""
        self.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        shown = [str(text) for text in self.page.locator(".line").all_inner_texts()]
        return next(text for text in shown if all(word in text for word in words))


class Browser:
    """A headless Chromium."""

    def __init__(self, running: Any) -> None:
        self._running = running

    @contextmanager
    def visit(self, path: Path, *, width: int = 1280, dark: bool = False) -> Iterator[Visit]:
        """Open a file in a fresh profile."""
        context = self._running.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(100_000)  # machines of a test farm are slow
        context.add_init_script(_WATCH)
        visit = Visit(context.new_page())
        own = path.resolve().as_uri()
        visit.page.on("console", lambda message: visit.logged.append(message.text))
        visit.page.on("pageerror", lambda error: visit.logged.append(str(error)))
        context.on("request", lambda request: visit.requests.append(request.url) if request.url != own else None)
        visit.page.goto(own)
        try:
            yield visit
        finally:
            context.close()


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser for the tests of a module; they are skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the browser: pip install playwright"
    )
    or_skip("CHROMIUM")
    chromium = find_chromium()
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=list(_ARGUMENTS), chromium_sandbox=False)
        try:
            yield Browser(running)
        finally:
            running.close()
