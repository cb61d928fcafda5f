"""One attack, drawn: what plain RAG makes of the retrieved passages, and what comes out when each is asked alone."""

from __future__ import annotations

from typing import Any

from docs.pictures.canvas import drawing, rectangle, words
from robustrag_integrations.drawing.elements import h
from robustrag_integrations.drawing.text import one_line

_WIDTH, _ROW, _BAND = 900, 30, 58
_SAYS = 560  # where the replies stand
_STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:var(--ink)}
.paper{fill:var(--paper);stroke:var(--line);rx:8px}
.faint{fill:var(--faint)}
.head{font-size:13px;fill:var(--faint)}
.title{font-weight:600;font-size:16px}
.answer{font-weight:700;font-size:18px}
.good{fill:var(--good)}
.bad{fill:var(--bad)}
.good-box{fill:var(--good-paper);stroke:var(--good);rx:6px}
.bad-box{fill:var(--bad-paper);stroke:var(--bad);rx:6px}
.rule{stroke:var(--line)}
"""
_STATUS = {"supports": "✔ supports", "mentions": "✔ mentions", "differs": "✘ differs"}
_MOST = 62  # characters of a passage that are shown


def hero(run: dict[str, Any]) -> str:
    """The picture of a recorded run (`record_attack`)."""
    rows, answer, radius = run["passages"], run["answer"], run["radius"]
    fooled = run["wanted"].casefold() in run["vanilla"].casefold()
    top = 76 + _BAND
    bottom = top + 34 + _ROW * len(rows)
    height = bottom + _BAND + 32
    vanilla = (
        f"Plain RAG gives {run['vanilla']!r}{', as the attacker wanted' * fooled}. "
        f"Asking about each of {len(rows)} passages alone gives {answer!r} with radius {radius}."
    )
    parts = [
        rectangle(0.5, 0.5, _WIDTH - 1, height - 1, "paper"),
        words(24, 36, run["question"], "title", 80),
        words(24, 58, f"{len(rows)} passages were retrieved; one is planted by an attacker", "head"),
        *_band(76, "bad" if fooled else "good", "Plain RAG: all passages in one prompt", run["vanilla"], ""),
        words(32, top + 24, "retrieved passage", "head"),
        words(_SAYS, top + 24, "asked alone, the model says", "head"),
    ]
    for number, row in enumerate(rows):
        y = top + 34 + number * _ROW
        if row["planted"]:
            parts.append(rectangle(24, y, _WIDTH - 48, _ROW - 4, "bad-box"))
        tone = "bad" if row["planted"] else ""
        parts += [
            words(32, y + 18, _ends(row["text"], run["wanted"]) if row["planted"] else row["text"], tone, _MOST),
            words(_SAYS, y + 18, row["says"] or "nothing", tone, 20),
            words(_SAYS + 160, y + 18, _STATUS.get(row["status"], row["status"]), tone or "good", 24),
            h("line", cls="rule", x1=24, x2=_WIDTH - 24, y1=y + _ROW - 2, y2=y + _ROW - 2),
        ]
    unit = "passage" if radius == 1 else "passages"
    promise = f"radius {radius}: whatever any {radius} {unit} said, this answer would come out"
    parts += _band(bottom + 14, "good", "RobustRAG: what enough of them say on their own", answer, promise)
    return drawing(_WIDTH, height, vanilla, _STYLE, parts)


def _ends(text: str, wanted: str) -> str:
    """The beginning of a planted text, and how it says what the attacker wants."""
    shown = one_line(text, 1000)
    said = shown.find(wanted) + len(wanted) if wanted in shown else len(shown)
    return shown if said <= _MOST else f"{shown[:28].rstrip()} … {shown[said - 30 : said].lstrip()}"


def _band(y: float, tone: str, what: str, answer: str, promise: str) -> list[Any]:
    """A way to answer, with its answer."""
    second = promise or "one passage was enough" * (tone == "bad")
    return [
        rectangle(24, y, _WIDTH - 48, _BAND - 10, f"{tone}-box"),
        words(36, y + 20, what, ""),
        words(36, y + 39, second, "head"),
        words(_SAYS, y + 31, answer, f"answer {tone}", 30),
    ]
