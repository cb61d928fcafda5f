"""What stands beside the rates of a run: which differences are more than chance, and how much the data can give."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.evaluation.score.intervals import EMPTY
from robustrag_integrations.evaluation.score.paired import Comparison
from robustrag_integrations.evaluation.score.presence import AnswerPresence
from robustrag_integrations.evaluation.show.lines import with_ends
from robustrag_integrations.evaluation.show.tables import Table
from robustrag_integrations.rounding import decimals

_TESTS = (
    "Paired by question; of more than four setups, each is set against the first and no other. alone: questions of "
    "which it holds for that setup and not for the other. difference: in percentage points, with its paired 95% "
    "interval. p: exact two-sided McNemar test; p (Holm): corrected for all {count} tests here. They were not planned "
    "beforehand: take them as exploratory."
)
_PRESENCE = (
    "Where no passage that the attacker leaves holds a right answer, a defence that answers from passages alone "
    "is not right: cacc is at most this. A model that knows the answer, or finds it in other words, may be above."
)


def comparisons_table(found: Sequence[Comparison], most: int | None = None) -> Table | None:
    """Every two setups side by side; None for no comparison.

    Args:
        found: of `paired.compare`.
        most: how many lines; those with the smallest p come first where there are more. None for all.
    """
    if not found:
        return None
    listed = list(found)
    notes = [_TESTS.format(count=sum(c.p is not None for c in found))]
    if most is not None and len(listed) > most:
        listed = sorted(listed, key=lambda c: 2.0 if c.p is None else c.p)[:most]
        notes.append(f"{len(found) - most} of {len(found)} lines, with larger p, are left out here.")
    several_data = len({(c.dataset, c.task) for c in found}) > 1
    several_models = len({c.model for c in found}) > 1
    header = [*(["data"] if several_data else []), *(["model"] if several_models else [])]
    rows = [
        [
            *([f"{c.dataset} ({c.task})"] if several_data else []),
            *([c.model] if several_models else []),
            *(str(c.attack), c.measure, c.setup, c.against, str(c.n)),
            *("-" if count is None else str(count) for count in (c.alone, c.other_alone)),
            *(with_ends(c.difference, 100), _p(c.p), _p(c.p_holm)),
        ]
        for c in listed
    ]
    names = ("attack", "measure", "setup", "against", "n", "alone", "other alone", "difference", "p", "p (Holm)")
    keys = len(header) + 4
    return Table("Differences between setups on the same questions", [*header, *names], rows, keys, notes)


def presence_table(found: Sequence[AnswerPresence]) -> Table | None:
    """How often the answer stands in what was retrieved; None where nothing is known."""
    if not found:
        return None
    against = sorted({known for one in found for known in one.bound})
    header = ["data", "k", "n", "of passages", "of questions"]
    header += [f"cacc <= k'={size}{' mod.' if attack == 'modification' else ''}" for attack, size in against]
    rows = [
        [
            f"{one.dataset} ({one.task})",
            "all" if one.top_k is None else str(one.top_k),
            str(one.n),
            with_ends(one.passages, 100),
            with_ends(one.found, 100),
            *(with_ends(one.bound.get(known, EMPTY), 100) for known in against),
        ]
        for one in found
    ]
    return Table("The answer stands in so many percent", header, rows, 2, [_PRESENCE])


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else decimals(value, 4 if value < 0.01 else 3)
