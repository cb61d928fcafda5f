"""Answers and certificates on the page, as elements in JSON's types, and the style sheet that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.drawing.answer import answer_parts
from robustrag_integrations.drawing.certificate import certificate_parts
from robustrag_integrations.drawing.elements import Element, h, to_data
from robustrag_integrations.drawing.notebook import INLINE
from robustrag_integrations.evaluation.show.report.listing import legend, strip
from robustrag_integrations.grouping.passages import Passage


def evidence_of(answer: RobustAnswer, passages: Sequence[Mapping[str, Any]]) -> Any:
    """Draw an answer with its groups, its counts or its decoding trace."""
    report = answer.to_dict()
    groups = h("div", strip({"answer": report, "passages": passages}), legend(), cls="strip-line")
    return _data(h("div", groups, *answer_parts(report, passages)))


def certificate_of(found: Certification) -> Any:
    """Draw a certificate with the evidence that proves it."""
    return _data(h("div", *certificate_parts(found.to_dict())))


def listed(passages: Sequence[Passage], planted: Sequence[bool]) -> list[dict[str, Any]]:
    """Return the passages in the form that the drawings take."""
    return [
        {"id": p.id, "source": p.source, "text": p.text, "planted": is_planted}
        for p, is_planted in zip(passages, planted, strict=True)
    ]


def evidence_styles() -> str:
    """Return the inline styles of a notebook cell as a style sheet: the page's policy allows no others."""
    return "".join(f".evidence {_selector(name)} {{ {style} }}\n" for name, style in INLINE.items())


def _selector(name: str) -> str:
    """Return the CSS selector of a tag, written `<td>`, or of a class."""
    return name[1:-1] if name.startswith("<") else f".{name}"


def _data(element: Element) -> Any:
    return to_data(element, lambda part: part)
