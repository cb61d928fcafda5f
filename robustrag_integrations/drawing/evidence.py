"""The evidence of an answer or certificate: keyword counts and votes as bars, and an answer token by token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations._util.display import decimals
from robustrag_integrations._util.words import count_of
from robustrag_integrations.drawing.elements import Element, h, table
from robustrag_integrations.drawing.text import one_line

_WIDTH, _HEIGHT = 100, 10  # of a bar's drawing; it is stretched to its cell
_NOTE = "no-retrieval token"


def counts_table(evidence: Mapping[str, Any], groups: int, most: int) -> Element | None:
    """Draw a row per keyword or option, most frequent first, with the threshold as a line through all bars.

    Args:
        evidence: `counts`, and where there are any `threshold`, `retained` and `corrupted_groups` (what an attacker
            can add to each count).
        groups: number of groups; the length of a full bar.
        most: rows that are shown.

    Returns:
        A table; None when nothing was counted.
    """
    counts = sorted(evidence.get("counts", {}).items(), key=lambda item: (-item[1], item[0]))
    if not counts:
        return None
    threshold, added = evidence.get("threshold"), evidence.get("corrupted_groups") or 0
    full = max(groups, counts[0][1] + added, threshold or 0, 1)
    kept = set(evidence.get("retained", ())) | set(evidence.get("always_retained", ()))
    rows = []
    for word, count in counts[:most]:
        status = "kept" if word in kept or (threshold is None and count == counts[0][1]) else "lost"
        bar = _bar(count / full, added / full, None if threshold is None else threshold / full, status)
        cells = (h("th", one_line(word, 80), scope="row", dir="auto"), h("td", bar, cls="bar"), h("td", str(count)))
        rows.append(h("tr", *cells, cls=status))
    return table((), rows, _caption(evidence, added, len(counts), most), "counts")


def _bar(count: float, added: float, threshold: float | None, status: str) -> Element:
    """Draw the count, the attacker's possible addition, and the threshold, as shares of a full bar."""
    parts = [h("rect", x=0, y=1, width=count * _WIDTH, height=_HEIGHT - 2, cls=f"mark {status}")]
    if added:
        parts.append(h("rect", x=count * _WIDTH, y=1, width=added * _WIDTH, height=_HEIGHT - 2, cls="mark added"))
    if threshold is not None:
        at = threshold * _WIDTH
        parts.append(h("line", x1=at, x2=at, y1=0, y2=_HEIGHT, cls="threshold"))
    size = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "preserveAspectRatio": "none"}
    return h("svg", *parts, cls="bar-drawing", aria_hidden="true", width="100%", height=14, **size)


def _caption(evidence: Mapping[str, Any], added: int, total: int, most: int) -> str:
    unit = "Keywords: groups that said each" if "threshold" in evidence else "Votes"
    if "threshold" in evidence:
        unit += f"; kept from {evidence['threshold']:g} on (the line)"
    if added:
        unit += f"; dashed: what {added} corrupted group{'s' * (added != 1)} can add"
    total = max(total, evidence.get("distinct_keywords", 0))
    return unit + (f"; {total - most:,} rarer ones are not shown" if total > most else "")


def steps_table(evidence: Mapping[str, Any], most: int) -> Element | None:
    """Draw a row per token: its lead over the next one, summed over groups and on average, and its best rival.

    Args:
        evidence: `gaps`, `answering`, `words`, `rivals` and `fallback_steps`.
        most: tokens that are shown.

    Returns:
        A table; None when nothing was decoded.
    """
    gaps = evidence.get("gaps", ())
    if not gaps:
        return None
    answering, words, rivals = evidence.get("answering", 0), evidence.get("words", ()), evidence.get("rivals", ())
    fallbacks = set(evidence.get("fallback_steps", ()))
    rows = [
        h(
            "tr",
            h("th", token_in_words(words[i]) if i < len(words) else "", scope="row", dir="auto"),
            h("td", f"{gap:.3g}", cls="number"),
            h("td", f"{decimals(gap / answering, 0, 100)}%" if answering else "–", cls="number"),
            h("td", token_in_words(rivals[i]) if i < len(rivals) else "–", dir="auto", cls="rival"),
            h("td", h("span", _NOTE, cls="tag") if i in fallbacks else None) if fallbacks else None,
        )
        for i, gap in enumerate(gaps[:most])
    ]
    names = ("Token", "Lead", "Mean lead", "Best rival", *(("Taken from",) if fallbacks else ()))
    caption = f"Token by token, {count_of(answering, 'group')} answering"
    caption += f"; {len(gaps) - most} more are not shown" if len(gaps) > most else ""
    return table(names, rows, caption, "steps")


def token_in_words(word: str) -> str:
    """Return a token for print: without its leading space, and as a sign if nothing else is left."""
    return one_line(word, 24) or ("⏎" if "\n" in word else "␣" if word else "·")
