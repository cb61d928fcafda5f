"""An SVG that stands alone: texts as text in the reader's own fonts, light and dark, nothing fetched."""

from __future__ import annotations

from robustrag_integrations.drawing.elements import Element, h, to_html
from robustrag_integrations.drawing.text import one_line, visible

LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "faint": "#636c76", "line": "#d1d9e0",
    "good": "#116329", "good-paper": "#dafbe1", "bad": "#a40e26", "bad-paper": "#ffebe9",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "line": "#3d444d",
    "good": "#7ee787", "good-paper": "#12261e", "bad": "#ffa198", "bad-paper": "#2d1315",
}  # fmt: skip


def drawing(width: int, height: int, description: str, style: str, children: list[Element]) -> str:
    """The file's text.

    Args:
        width, height: of the picture, in pixels.
        description: for who cannot see it.
        style: CSS; colours as `var(--ink)`, of `LIGHT` and `DARK`.
        children: what is drawn. Texts in it are escaped, and hidden characters in them are named.
    """
    sheet = (
        f":root{{{_variables(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        f"text{{white-space:pre}}{style}"
    )
    inner = "\n".join(to_html(child) for child in [h("title", description), *children])
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{sheet}</style>\n{inner}\n</svg>\n'


def rectangle(x: float, y: float, width: float, height: float, cls: str) -> Element:
    """A box."""
    return h("rect", cls=cls, x=x, y=y, width=width, height=height)


def words(x: float, y: float, text: str, cls: str, most: int | None = None) -> Element:
    """A line of text; `most` is how many characters are shown."""
    return h("text", visible(text) if most is None else one_line(text, most), cls=cls, x=x, y=y)


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
