"""Draws a certificate: tau for one attacker, its standing, and the worst case that was found."""

from __future__ import annotations

from typing import Any

from robustrag_integrations._util.words import standing_in_words
from robustrag_integrations.drawing.answer import account_parts
from robustrag_integrations.drawing.elements import Element, h, table
from robustrag_integrations.drawing.text import one_line, visible

_RESPONSES = 10


def certificate_parts(found: Any) -> tuple[Element, ...]:
    """Draw a `Certification`."""
    tag = "tag good" if found.certified and found.tau > 0 else "tag quiet"
    standing = h("span", standing_in_words(found.tau, found.certified), cls=tag)
    head = h("p", h("span", f"τ = {found.tau:g}", cls="answer-text"), " ", standing, cls="given")
    rows = [
        h(
            "tr",
            h("td", f"{r.score:g}"),
            h("td", "(no answer)" if r.text is None else visible(r.text, 400), dir="auto", cls="response"),
            h("td", one_line(r.cause, 160), cls="note"),
        )
        for r in found.responses[:_RESPONSES]
    ]
    left = len(found.responses) - len(rows)
    caption = f"What this attacker can cause ({'all' if found.complete else 'some'} of it, worst first"
    caption += f"; {left} more are not shown)" if left else ")"
    responses = [table(("Score", "Response", "Cause"), rows, caption, "responses")] if rows else []
    return (head, *account_parts(found), *responses)
