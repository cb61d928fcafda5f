"""Answers and certificates in a notebook cell, without scripts or style sheets: every style is inline.

Words have the notebook's own colour (`inherit`, `currentColor`); other colours are on marks and borders
alone and in the middle of the scale, so that both a light and a dark page can carry them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.display import visible
from robustrag_integrations.drawing.answer import answer_parts, certificate_parts
from robustrag_integrations.drawing.elements import Element, h, to_html

_RULE = "1px solid rgba(128,128,128,.35);"
_CELL = "text-align:left;vertical-align:top;white-space:normal;background:none;color:inherit;font-size:inherit;"
_CODE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
_SAFE = "overflow-wrap:anywhere;unicode-bidi:isolate;"

INLINE: Mapping[str, str] = {
    "card": f"font:14px/1.5 system-ui,sans-serif;max-width:62em;padding:12px 16px;border:{_RULE}border-radius:4px;"
    "color:inherit;overflow:auto;",
    "question": f"margin:0 0 2px;opacity:.75;{_SAFE}",
    "given": f"margin:0 0 10px;{_SAFE}",
    "answer-text": f"font-size:1.25em;font-weight:600;white-space:pre-wrap;{_SAFE}",
    "facts": "margin:0 0 10px;display:block;",
    "fact": "display:flex;gap:12px;margin:0;",
    "<dt>": "flex:0 0 7em;opacity:.7;font-weight:400;margin:0;",
    "<dd>": f"margin:0;{_SAFE}",
    "warnings": "margin:0 0 10px;padding:6px 10px 6px 26px;border-left:3px solid #c98a1b;",
    "<table>": f"border-collapse:collapse;border:0;width:100%;margin:0 0 12px;font-size:inherit;{_CELL}",
    "<caption>": "caption-side:top;text-align:left;opacity:.7;padding:0 0 4px;color:inherit;",
    "<th>": f"{_CELL}padding:4px 10px 4px 0;font-weight:600;{_SAFE}",
    "<td>": f"{_CELL}padding:4px 10px 4px 0;{_SAFE}",
    "<tr>": f"background:none;border-top:{_RULE}",
    "<p>": "margin:0 0 4px;",
    "bar": "width:45%;letter-spacing:1px;",
    "kept": "font-weight:600;",
    "lost": "opacity:.7;",
    "rank": "width:3.5em;",
    "verdict": "width:11em;",
    "sources": "width:24%;",
    "cell": "display:inline-block;width:9px;height:9px;border:1.5px solid;box-sizing:border-box;",
    "supports": "border-color:#1f9d74;background:#1f9d74;",
    "variant": "border-color:#1f9d74;background:linear-gradient(to top,#1f9d74 40%,transparent 40%);",
    "differs": "border-color:#c98a1b;background:linear-gradient(to top,#c98a1b 40%,transparent 40%);",
    "unsure": "border-color:#c98a1b;border-style:dotted;",
    "abstained": "border-color:rgba(128,128,128,.6);",
    "not_asked": "border-color:rgba(128,128,128,.3);border-style:dotted;",
    "failed": "border-color:#d8553f;",
    "note": "opacity:.7;font-size:.92em;",
    "cut": "opacity:.7;font-size:.92em;margin:2px 0;",
    "response": f"{_CODE}font-size:.95em;white-space:pre-wrap;max-height:12em;overflow:auto;margin:0 0 4px;{_SAFE}",
    "passage": f"{_CODE}font-size:.92em;white-space:pre-wrap;max-height:16em;overflow:auto;margin:4px 0;"
    f"padding:6px 8px;background:rgba(128,128,128,.12);color:inherit;{_SAFE}",
    "tag": f"border:{_RULE}border-radius:3px;padding:0 5px;font-size:.82em;font-weight:600;margin:0 4px 0 0;",
    "planted": "border-color:#d8553f;",
    "good": "border-color:#1f9d74;",
    "source": _SAFE,
}


def style_sheet(scope: str = "") -> str:
    """Return the same styles as a style sheet, for pages whose policy allows none inline; `scope` goes before each."""
    named = ((name[1:-1] if name.startswith("<") else f".{name}", style) for name, style in INLINE.items())
    return "".join(f"{scope}{name} {{ {style} }}\n" for name, style in named)


def answer_html(answer: Any) -> str:
    """Return a notebook cell for a `RobustAnswer`."""
    return _cell(answer, answer_parts(answer))


def certificate_html(found: Any) -> str:
    """Return a notebook cell for a `Certification`."""
    return _cell(found, certificate_parts(found))


def _cell(subject: Any, parts: Sequence[Element]) -> str:
    question = h("p", visible(subject.query, 400), cls="question", dir="auto")
    return to_html(h("div", question, *parts, cls="card"), INLINE)
