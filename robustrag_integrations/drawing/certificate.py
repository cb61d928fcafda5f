"""Draws a certificate: tau for one attacker, its standing, and the worst case that was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations._util.words import standing_in_words
from robustrag_integrations.drawing.answer import facts, known, warnings
from robustrag_integrations.drawing.elements import Element, h, table
from robustrag_integrations.drawing.evidence import counts_table
from robustrag_integrations.drawing.text import one_line, visible

_RESPONSES = 10


def certificate_parts(found: Mapping[str, Any]) -> tuple[Element, ...]:
    """Draw a certificate, from `Certification.to_dict()`."""
    evidence = known(found["evidence"])
    parts: list[Element | None] = [
        h("p", h("span", f"τ = {found['tau']:g}", cls="answer-text"), " ", _standing(found), cls="given"),
        facts(_facts(found)),
        warnings(found["warnings"]),
        counts_table(evidence, evidence.get("untouched_groups", 0), 12),
        _responses(found),
    ]
    return tuple(part for part in parts if part is not None)


def attacker_in_words(found: Mapping[str, Any]) -> str:
    """Describe the attacker of a certificate."""
    size = found["corruption_size"]
    return f"{one_line(found['attack'], 20)} of up to {size} passage{'s' * (size != 1)} among the retrieved"


def _standing(found: Mapping[str, Any]) -> Element:
    proven = found["certified"] and found["tau"] > 0
    said = standing_in_words(found["tau"], found["certified"])
    return h("span", said, cls="tag good" if proven else "tag quiet")


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("Attacker", f"{attacker_in_words(found)}, {found['cases']} case{'s' * (found['cases'] != 1)}"),
        ("Reference", one_line(" | ".join(found["references"]), 200)),
        ("Metric", one_line(found["metric"], 60)),
        ("Model calls", str(found["model_calls"])),
    ]
    if found["stopped"]:
        pairs.append(("Stopped", one_line(found["stopped"], 300)))
    if estimate := found["estimate"]:
        seen = f"{estimate['value']:g} from {estimate['sample_size']} samples; not a guarantee"
        pairs.append(("Estimate", seen))
    return pairs


def _responses(found: Mapping[str, Any]) -> Element | None:
    if not found["responses"]:
        return None
    rows = [
        h(
            "tr",
            h("td", f"{r['score']:g}"),
            h("td", "(no answer)" if r["text"] is None else visible(r["text"], 400), dir="auto", cls="response"),
            h("td", one_line(r["cause"], 160), cls="note"),
        )
        for r in found["responses"][:_RESPONSES]
    ]
    total = len(found["responses"])
    known = "all" if found["complete"] else "some"
    caption = f"What this attacker can cause ({known} of it, worst first"
    caption += f"; {total - _RESPONSES} more are not shown)" if total > _RESPONSES else ")"
    return table(("Score", "Response", "Cause"), rows, caption, "responses")
