"""Draws an answer of decoding aggregation token by token: each token's lead and its closest rival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations._util.words import count_of
from robustrag_integrations.drawing.elements import Element, h
from robustrag_integrations.drawing.text import one_line

_NOTE = "no-retrieval token"


def steps_table(evidence: Mapping[str, Any], settings: Mapping[str, Any], most: int) -> Element | None:
    """Draw a row per token: its lead over the next one, summed over groups and on average, and its best rival.

    Args:
        evidence: `gaps`, `answering`, and where they were kept `words`, `rivals` and `fallback_steps`; answers of older
            versions have `tokens` alone, by number.
        settings: `eta`, where the defence has one.
        most: tokens that are shown.

    Returns:
        A table; None when nothing was decoded.
    """
    gaps = evidence.get("gaps", ())
    if not gaps:
        return None
    answering, words, rivals = evidence.get("answering", 0), _words(evidence), evidence.get("rivals", ())
    eta = settings.get("eta", 0)
    fallbacks = set(evidence.get("fallback_steps", (i for i, gap in enumerate(gaps) if gap <= eta)))
    rows = [
        h(
            "tr",
            h("th", words[i] if i < len(words) else "", scope="row", dir="auto"),
            h("td", f"{gap:.3g}", cls="number"),
            h("td", f"{decimals(gap / answering, 0, 100)}%" if answering else "–", cls="number"),
            h("td", token_in_words(rivals[i]) if i < len(rivals) else "–", dir="auto", cls="rival"),
            h("td", h("span", _NOTE, cls="tag") if i in fallbacks else None) if fallbacks else None,
        )
        for i, gap in enumerate(gaps[:most])
    ]
    names = ("Token", "Lead", "Mean lead", "Best rival", *(("Taken from",) if fallbacks else ()))
    head = [h("th", name, scope="col") for name in names]
    caption = f"Token by token, {count_of(answering, 'group')} answering"
    caption += f"; {len(gaps) - most} more are not shown" if len(gaps) > most else ""
    return h("table", h("caption", caption), h("thead", h("tr", *head)), h("tbody", *rows), cls="steps")


def token_in_words(word: str) -> str:
    """Return a token for print: without its leading space, and as a sign if nothing else is left."""
    return one_line(word, 24) or ("⏎" if "\n" in word else "␣" if word else "·")


def _words(evidence: Mapping[str, Any]) -> Sequence[str]:
    """Return the tokens as words; their numbers where the words were not kept."""
    if words := evidence.get("words"):
        return [token_in_words(word) for word in words]
    return [*(f"token {number}" for number in evidence.get("tokens", ())), "<end>"]
