"""The tables of docs/guide/threat-model.md, computed with the package: `python -m tests.docs.threat_model_tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import ONE, choose_token, fixed_point, step_radius
from robustrag_integrations.defenses.keyword.threshold import Tally, Threshold

RULES: dict[str, Threshold] = {
    **{f"{a}, {b}": Threshold.of(a, b) for a, b in ((0.2, 3), (0.3, 3), (0.4, 4), (0.5, 5), (0.5, 10))},
    "more than half": Threshold(Fraction(1, 2), None, 2, is_strict=True),
}
SLACK = DecodingSettings().slack_units


def keyword(agreeing: int, others: int, rule: Threshold) -> int:
    """The radius when so many groups say the same, and the others something different each."""
    said = [{"paris"}] * agreeing + [{f"word{n}"} for n in range(others)]
    tally = Tally.of(said, rule)
    return tally.radius() if "paris" in tally.kept else 0


def keyword_by_groups() -> str:
    """All groups agree."""
    rows = [[str(n), *(str(keyword(n, 0, rule)) for rule in RULES.values())] for n in (3, 5, 7, 10, 15, 20, 30)]
    return table(["answering groups", *RULES], rows)


def keyword_by_agreement() -> str:
    """Ten groups answer, of which some agree and the others each say something else."""
    rows = [
        [f"{c} of 10", *(str(keyword(c, 10 - c, rule)) for rule in RULES.values())] for c in (10, 9, 8, 7, 6, 5, 4, 3)
    ]
    return table(["agree", *RULES], rows)


def decoding(probabilities: Sequence[float], eta: float) -> int:
    """The radius of one step: token 0 has these probabilities, token 1 the rest, token 2 is the no-retrieval token."""
    rows = fixed_point(np.array([[p, 1 - p, 0.0] for p in probabilities]))
    choice = choose_token(rows, 2, round(eta * ONE))
    return step_radius(rows, choice, 2, round(eta * ONE), SLACK, len(probabilities) - 1)


def decoding_by_eta() -> str:
    """Ten and twenty groups that agree with a probability each, or are divided."""
    cases = (
        ("10 groups, 0.99", [0.99] * 10),
        ("10 groups, 0.9", [0.9] * 10),
        ("10 groups, 0.7", [0.7] * 10),
        ("20 groups, 0.9", [0.9] * 20),
        ("10 groups, divided 5 : 5", [0.99] * 5 + [0.01] * 5),
        ("10 groups, divided 6 : 4", [0.99] * 6 + [0.01] * 4),
    )
    etas = (0, 1, 2, 4, 6)
    return table(["what the groups say", *(f"eta = {e}" for e in etas)], [
        [name, *(str(decoding(rows, eta)) for eta in etas)] for name, rows in cases
    ])  # fmt: skip


TABLES = {
    "keyword-groups": keyword_by_groups,
    "keyword-agreement": keyword_by_agreement,
    "decoding": decoding_by_eta,
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    for name, make in TABLES.items():
        print(f"<!-- {name} -->\n{make()}\n")
