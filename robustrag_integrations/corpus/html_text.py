"""Extracts the text of one web page as Markdown; its style sheets and scripts are not looked at (`extract` runs it).

Left out is what no reader looks for: navigation, search, sign-up forms, notices about cookies, lines of copyright, and
outside the main part (`main`, `article`) whatever has no words but those of links. The page's own markup decides, never
another page. Words of a header, footer or side bar stay: they are where opening hours and addresses are.
"""

from __future__ import annotations

import html
import re
from typing import Any

from robustrag_integrations.corpus.limits import FileError, FileLimits
from robustrag_integrations.corpus.markup import is_hidden

# What no reader sees: what stands in for what a browser shows, too; and `nav`, links to other pages.
_NO_TEXT = ["script", "style", "template", "noscript", "noframes", "iframe", "datalist", "select", "title", "nav"]
_NO_TEXT += ["audio", "video", "canvas", "desc"]
_NO_ROLE = ["navigation", "search", "menu", "menubar"]
_MAIN = ["main", "article"]
_REGIONS = {*_MAIN, "html", "body", "header", "footer", "aside", "td", "[document]"}
_COOKIES = re.compile(r"cookie(?!s?(?:\s|$))|consent|gdpr", re.I)
_NOTICE = re.compile(r"©|\bcopyright\b|all rights reserved|\bpowered by\b|\b(?:built|made|created) with\b", re.I)
_LETTERS = re.compile(r"newsletter|subscri|sign-?up|mail", re.I)
_DIALOGS = ("dialog", "alertdialog")
_LONGEST_NOTICE = 300  # characters; and of a form
_LONGEST_BANNER = 2000
_OTHER_FILES = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"\x89PNG", b"\xff\xd8\xff")
_PLAIN = ["a", "img", "b", "strong", "em", "i"]  # whose marks would stand in the middle of an answer
_COLOUR = re.compile(r"(^|;)\s*color\s*:[^;]*", re.I)


def text_of(data: bytes, limits: FileLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the title and text of a page, and how many hidden elements are left out; with `hidden` they are read."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    if data.startswith(_OTHER_FILES):
        raise FileError("is not a web page; give it the ending of what it is")
    try:
        page = BeautifulSoup(data.decode("utf-8-sig"), "lxml")
    except UnicodeDecodeError:
        page = BeautifulSoup(data, "lxml")  # in the encoding that it declares
    title = page.title.get_text(" ", strip=True) if page.title else ""
    unread = [*page.find_all(_NO_TEXT), *page.find_all(role=_NO_ROLE), *page.find_all("dialog", open=False)]
    for element in unread:
        element.decompose()
    left_out = 0
    for element in [] if hidden else page.find_all(True):
        if not element.decomposed and _is_hidden(element):
            left_out += bool(element.get_text(strip=True))
            element.decompose()
    _leave_out_furniture(page)
    for raised in page.find_all("sup"):
        raised.insert(0, "^")  # 10 to the sixth is not 106
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", strip=_PLAIN, escape_asterisks=False, escape_underscores=False
    )
    text = re.sub(r"[ \t]+$", "", converter.convert_soup(page), flags=re.M)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    if title and title not in text[:300]:
        text = f"{title}\n\n{text}".strip()
    limits.check(len(text))
    if not text:
        hint = "; --hidden-text (hidden_text=True) reads what is hidden" if left_out else ""
        raise FileError(f"holds no text that anybody can see without running its scripts{hint}")
    return text, left_out


def _leave_out_furniture(page: Any) -> None:
    """Take out of a page what surrounds its content, but not the words of headers, footers and side bars."""
    for form in page.find_all("form"):
        _leave_out_form(form)
    main = [*page.find_all(_MAIN), *page.find_all(role="main")]
    inside = {id(inner) for part in main for inner in part.descendants}
    beside = [aside for part in main for aside in part.find_all(["aside", "footer"])]
    inside -= {id(inner) for aside in beside for inner in aside.descendants}
    for element in page.find_all(True):
        if not element.decomposed and id(element) not in inside and _is_about_cookies(element):
            element.decompose()
    for text in page.find_all(string=_NOTICE):
        if id(text) not in inside and len(text) < _LONGEST_NOTICE:
            text.extract()
    links = [link for link in page.find_all("a", href=True) if not link["href"].startswith(("tel:", "mailto:"))]
    headings = page.find_all(["h2", "h3", "h4", "h5", "h6"])
    aside = {id(inner) for element in [*links, *headings] for inner in element.descendants}
    worded: set[int] = set()  # elements with words besides those of links and headings
    for text in page.find_all(string=re.compile(r"\w")):
        for above in () if id(text) in aside else text.parents:
            if id(above) in worded:
                break
            worded.add(id(above))
    for link in links if id(page) in worded else ():
        if not link.decomposed and id(link) not in inside | aside and id(link.parent) not in worded:
            top = link.parent
            while id(top.parent) not in worded:
                top = top.parent
            top.decompose()


def _leave_out_form(form: Any) -> None:
    """Take out a short form; with its surroundings where it signs up for letters."""
    said = form.get_text(strip=True)
    if form.decomposed or len(said) > _LONGEST_NOTICE or form.find([*_MAIN, "h1", "table"]):
        return
    around = form.parent
    while around.parent is not None and around.get_text(strip=True) == said:
        around = around.parent
    is_short = len(around.get_text(strip=True)) <= len(said) + _LONGEST_NOTICE
    is_sign_up = is_short and around.name not in _REGIONS and _LETTERS.search(_names(around)) and not form.textarea
    (around if is_sign_up else form).decompose()


def _is_about_cookies(element: Any) -> bool:
    if element.name in _REGIONS or not (element.get("role") in _DIALOGS or _COOKIES.search(_names(element))):
        return False
    said = element.get_text(" ", strip=True)
    return len(said) <= _LONGEST_BANNER and "cookie" in said.lower() and not element.find([*_MAIN, "h1"])


def _names(element: Any) -> str:
    values = (element.get(name, "") for name in ("id", "class", "aria-label"))
    return " ".join(value if isinstance(value, str) else " ".join(value) for value in values)


def _is_hidden(element: Any) -> bool:
    named = {name: str(element[name]) for name in ("hidden", "color", "style") if name in element.attrs}
    if not named:
        return False
    if any(above.get("bgcolor") or "background" in str(above.get("style")) for above in element.parents):
        named.pop("color", None)  # white on what may be dark
        named["style"] = _COLOUR.sub(r"\1", named.get("style", ""))
    return is_hidden(f"<{element.name} " + " ".join(f'{k}="{html.escape(v)}"' for k, v in named.items()) + ">")
