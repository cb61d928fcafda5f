"""What a wiring check finds: `find_undefended` of both integrations."""

from __future__ import annotations

from dataclasses import dataclass

from robustrag_integrations.display import printable
from robustrag_integrations.errors import RobustRAGError


@dataclass(frozen=True)
class Finding:
    """One place where retrieved text reaches a model without isolation, or where a robust answer is lost.

    Attributes:
        kind: what sort of place, in a word or two, such as `stock-synthesizer`.
        path: how to get there from what was checked, such as `.query_engine._response_synthesizer`.
        component: the class found there.
        problem: what happens there.
        fix: what to write in its place.
    """

    kind: str
    path: str
    component: str
    problem: str
    fix: str

    def __str__(self) -> str:
        return printable(f"{self.path or 'here'} ({self.component}): {self.problem}. Fix: {self.fix}")


class UndefendedError(RobustRAGError, AssertionError):
    """Retrieved text can reach a model without isolation.

    Attributes:
        findings: every place.
    """

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = list(findings)
        places = "place" if len(findings) == 1 else "places"
        super().__init__("\n".join([f"not defended in {len(findings)} {places}:", *(f"- {f}" for f in findings)]))
