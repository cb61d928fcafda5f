"""The result of a certification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations._util.display import printable, table
from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.words import count_of, standing_in_words
from robustrag_integrations.certification.cases import AttackMode

SCHEMA = "robustrag/certification/3"


@dataclass(frozen=True)
class PossibleResponse:
    """One response that an attacker can cause, in the case of this number; no text where an error is raised instead."""

    text: str | None
    score: float
    cause: str
    case: int


@dataclass(frozen=True)
class Certification:
    """The worst that an attacker can do to one answer.

    Attributes:
        tau: whatever the attacker writes, the answer scores at least this. 0 guarantees nothing.
        certified: True if tau is what the whole analysis gives. False when a limit cut it short: tau is then 0 for
            want of a proof, not since an attack is known.
        corruption_size: k', passages among the retrieved that are under the attacker's control.
        attack: `injection` or `modification`.
        query, references, metric, method: the question, the right answers, the metric's and the method's names.
        responses: R, the responses found that an attacker can cause, worst first.
        complete: True if these are all of them.
        unbounded: True if the attacker can cause responses without limit, since they alone decide a keyword, a token,
            or everything.
        stopped: why R is not complete; None when it is.
        cases: number of cases of untouched sources.
        model_calls: the calls spent until this was decided, shared by all sizes that were certified together: prompts,
            those that fill up a batch included; for decoding, prefixes scored, all rows together, once each.
        settings: the defence's settings and the retrieval's, JSON-safe; the extractor's fingerprint among them.
        numerics: precision, device, shapes and slack of the computation.
        warnings: weaknesses of the guarantee, in words.
        evidence: the data of pictures: a keyword tally, or votes.
    """

    tau: float
    certified: bool
    corruption_size: int
    attack: AttackMode
    query: str
    references: tuple[str, ...]
    metric: str
    method: str
    responses: tuple[PossibleResponse, ...] = ()
    complete: bool = True
    unbounded: bool = False
    stopped: str | None = None
    cases: int = 0
    model_calls: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    numerics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-safe dictionary; `schema` names its version."""
        return {"schema": SCHEMA, **plain(self)}

    def account(self) -> list[tuple[str, str]]:
        """What terminals and pages tell besides the possible responses: names and values, not yet made printable."""
        size = self.corruption_size
        passages = f"up to {count_of(size, 'passage')} among the retrieved" if size else "nothing"
        told = [
            ("Question", self.query),
            ("Reference", " | ".join(self.references)),
            ("Attacker", f"{self.attack} of {passages}, {count_of(self.cases, 'case')}"),
            ("Method", f"{self.method}, {count_of(self.model_calls, 'model call')}"),
            ("At worst", f"tau {self.tau:g} ({self.metric}; {standing_in_words(self.tau, self.certified)})"),
        ]
        if self.stopped:
            told.append(("Stopped", self.stopped))
        return told + [("Warning", warning) for warning in self.warnings]

    def explain(self) -> str:
        """A readable account for a terminal; hostile characters in responses are neutralised."""
        lines = [f"{name + ':':10} {printable(text, 600)}" for name, text in self.account()]
        if self.responses:
            rows = [(f"{r.score:g}", "(no answer)" if r.text is None else r.text, r.cause) for r in self.responses]
            lines += ["", table(("score", "possible response", "cause"), rows[:20], limits=(8, 60, 60))]
            lines += [f"and {len(rows) - 20} more"] if len(rows) > 20 else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same account for a notebook; no script, and whatever models said stays text."""
        from robustrag_integrations.drawing.notebook import certificate_html

        return certificate_html(self)
