"""HTML as a tree of elements from an allow-list: text of documents and models always stays text.

Texts and attributes are made visible (see `text`) as they are written, so that it cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from robustrag_integrations._util.display import visible

TAGS = frozenset(
    {
        *("section", "div", "details", "summary", "h1", "h3", "h4", "p", "span", "b", "i", "pre"),
        *("ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    }
)
ATTRIBUTES = frozenset({"role", "dir", "title", "scope", "colspan", "tabindex", "aria-label", "aria-hidden"})
# Nothing here loads, links, submits or runs: no a, img, form, script, style, iframe; no href, src, style, on*, id.

Child: TypeAlias = "Element | str"


@dataclass(frozen=True)
class Element:
    """An HTML element.

    Attributes:
        tag: one of `TAGS`.
        cls: its class, a word or several.
        attributes: names from `ATTRIBUTES` to values.
        children: elements, and texts as they are: they are escaped when written.
    """

    tag: str
    cls: str
    attributes: Mapping[str, str]
    children: tuple[Child, ...]

    def __post_init__(self) -> None:
        if self.tag not in TAGS or not self.attributes.keys() <= ATTRIBUTES:
            raise ValueError(f"<{self.tag} {' '.join(self.attributes)}> is not among the elements that may be drawn")


def h(tag: str, *children: Child | None, cls: str = "", **attributes: str) -> Element:
    """Create an element. Children that are None are left out; `aria_label` becomes `aria-label`."""
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return Element(tag, cls, named, tuple(c for c in children if c is not None))


def table(names: Sequence[str], rows: Iterable[Element], caption: str | None = None, cls: str = "") -> Element:
    """Create a table of these rows; without names it has no head."""
    head = h("thead", h("tr", *(h("th", name, scope="col") for name in names))) if names else None
    return h("table", None if caption is None else h("caption", caption), head, h("tbody", *rows), cls=cls)


def to_html(node: Child, styles: Mapping[str, str] | None = None) -> str:
    """Return the markup. With `styles` (class name to CSS declarations) classes become inline styles."""
    if isinstance(node, str):
        return escape(visible(node))
    shown = dict(node.attributes)
    if styles is None:
        shown = {"class": node.cls, **shown} if node.cls else shown
    elif style := "".join(styles.get(name, "") for name in (f"<{node.tag}>", *node.cls.split())):
        shown["style"] = style
    inner = "".join(to_html(child, styles) for child in node.children)
    written = "".join(f' {name}="{escape(visible(value))}"' for name, value in shown.items())
    return f"<{node.tag}{written}>{inner}</{node.tag}>"


def to_data(node: Child) -> Any:
    """Return the tree in JSON's types: `[tag, class or 0, attributes or 0, child, ...]`, or a text."""
    if isinstance(node, str):
        return visible(node)
    attributes = {name: visible(value) for name, value in node.attributes.items()}
    return [node.tag, node.cls or 0, attributes or 0, *map(to_data, node.children)]
