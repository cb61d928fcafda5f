"""Answers and certificates as HTML: what documents and models say stays text."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.fuzz.checks import assert_valid_unicode
from tests.fuzz.source import Source, Target
from tests.fuzz.targets.answers import a_certificate, an_answer

# Written down here once more, so that a longer list in the package is noticed.
_ALLOWED = """
    section div p span b i h1 h3 h4 ul ol li dl dt dd table caption thead tbody tr th td details
    summary pre svg rect line
"""
TAGS = frozenset(_ALLOWED.split())
_ACTIVE = ("javascript:", "expression(", "url(", "@import", "data:")


class InertPage(HTMLParser):
    """Reads markup as a browser would begin to, and raises at anything that loads, links, runs or is left open."""

    allowed = TAGS
    void: frozenset[str] = frozenset()

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.allowed, f"<{tag}> is on the page"
        for name, value in attrs:
            assert not name.startswith("on"), f"{name}= is on the page"
            assert name not in ("src", "srcdoc", "action", "formaction", "xlink:href", "id"), name
            assert name != "href" or (tag, value) == ("link", "data:,")
            assert name != "style" or not any(word in (value or "").casefold() for word in _ACTIVE)
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment is on the page")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration is on the page")

    unknown_decl = handle_decl

    def handle_pi(self, data: str) -> None:
        raise AssertionError("a processing instruction is on the page")


def assert_inert(markup: str) -> None:
    """Well formed, of harmless elements only, and valid Unicode."""
    assert_valid_unicode(markup)
    page = InertPage()
    page.feed(markup)
    page.close()
    assert page.open == []
    assert not any(ord(c) < 32 and c not in "\n\t" for c in markup)


def notebook_answers(source: Source) -> None:
    """An answer in a notebook."""
    assert_inert(an_answer(source)._repr_html_())


def notebook_certificates(source: Source) -> None:
    """A certificate in a notebook."""
    assert_inert(a_certificate(source)._repr_html_())


TARGETS = (Target("notebook-answers", notebook_answers, 2), Target("notebook-certificates", notebook_certificates, 2))
