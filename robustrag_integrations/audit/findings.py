"""What an audit finds."""

from __future__ import annotations

from dataclasses import dataclass

from robustrag_integrations._util.display import printable


@dataclass(frozen=True)
class Finding:
    """One place where retrieved text reaches a model without isolation, or where a robust answer is lost.

    Attributes:
        kind: the sort of place, such as `prompt`.
        path: the names of the runs that lead there, outermost first.
        component: the class found there.
        problem: the defect.
        fix: the code to write in its place.
        origins: where the texts in it come from.
    """

    kind: str
    path: str
    component: str
    problem: str
    fix: str
    origins: tuple[str, ...] = ()

    def __str__(self) -> str:
        return printable(f"{self.path or 'here'} ({self.component}): {self.problem}. Fix: {self.fix}")
