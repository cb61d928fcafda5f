"""Reports of tuning: a table, and the comments of the settings file."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations._util.rounding import decimals
from robustrag_integrations._util.words import count_of
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.show.lines import MOST_WARNINGS
from robustrag_integrations.evaluation.show.tables import fitted_table
from robustrag_integrations.evaluation.tune.tuning import Candidate, Tuned, Wish

FEW = 30  # held-out questions below which the intervals are said to be wide

_LONGEST_CELL = 90  # a setting whose number is cut off says nothing


def measure_name(wish: Wish) -> str:
    """Return the name of certified accuracy in tables: `ecacc 1`."""
    return f"ecacc {wish.corruption_size}"


def tuned_table(tuned: Tuned, wish: Wish, width: int | None) -> str:
    """Every candidate, the most often certified first; `>` is chosen.

    Args:
        tuned: the result of tuning.
        wish: the goal of tuning.
        width: of the terminal; None for any.
    """
    ordered = sorted(tuned.candidates, key=lambda c: (c.certified.mean or 0, c.accuracy.mean or 0), reverse=True)
    header = ("", "settings", "accuracy", measure_name(wish), "abstained", "radius", "calls")
    rows = [(">" if c is tuned.chosen else "", *_cells(c)) for c in ordered]
    return fitted_table(header, rows, keys=2, width=width, limit=_LONGEST_CELL)


def in_words(tuned: Tuned, wish: Wish) -> list[str]:
    """Describe the choice: the setup, the number of questions, and its worth on questions that had no say in it."""
    chosen, held = tuned.chosen, tuned.held_out
    lines = [
        f"chosen: {chosen.label}, on {_questions(chosen)} ({measures(chosen, wish)})",
        f"held out: {_questions(held)} that had no say: {measures(held, wish)}",
        f"{measure_name(wish)}: expected certified accuracy, a share of a data set; no certificate of a single answer",
    ]
    if len(tuned.candidates) > 1:
        lines.append(
            f"the first line flatters: it is the best of {len(tuned.candidates)} on its own questions; "
            "the second does not"
        )
    pairs = (("accuracy", chosen.accuracy, held.accuracy), (measure_name(wish), chosen.certified, held.certified))
    outside = [name for name, first, second in pairs if not _within(first, second)]
    lines.append(
        f"the halves do not agree: {' and '.join(outside)} of the first lies outside the second's interval"
        if outside
        else "the halves agree: both figures of the first lie within the second's intervals"
    )
    if held.accuracy.n < FEW:
        lines.append(f"{_questions(held)} are few: the intervals (95%) say how little is known; give more")
    if tuned.failed:
        lines.append(f"not right, as {count_of(tuned.failed, 'row')} failed; run the same command again to retry")
    rules = {_rule(c) for c in tuned.candidates}
    if len(rules) > 1:
        lines.append(
            f"several vote rules were compared ({', '.join(sorted(rules))}): the radius counts groups, and an attacker "
            "of one page is one group by origin, many by passage; the same number is not the same attacker"
        )
    return lines


def _within(figure: Interval, interval: Interval) -> bool:
    return None in (figure.mean, interval.low, interval.high) or interval.low <= figure.mean <= interval.high  # type: ignore[operator]


def warned_in_words(tuned: Tuned) -> list[str]:
    """List what the chosen settings' answers and certificates rest on, a line per kind of warning."""
    counts = tuned.warnings.items()
    found = [f"warning of {count_of(count, 'row')} of the chosen settings: {text}" for text, count in counts]
    if len(found) > MOST_WARNINGS:
        found[MOST_WARNINGS:] = [f"and {len(found) - MOST_WARNINGS} more kinds of warnings"]
    if tuned.repeats and not tuned.repeats.startswith("deterministic"):
        found.insert(0, f"the model: {tuned.repeats}")
    return found


def measures(candidate: Candidate, wish: Wish) -> str:
    """Return the three shares of a candidate with their intervals."""
    return (
        f"accuracy {_share(candidate.accuracy)}, {measure_name(wish)} {_share(candidate.certified)}, "
        f"abstained {_share(candidate.abstention)}"
    )


def comments(tuned: Tuned, wish: Wish, about: Sequence[str]) -> list[str]:
    """Return the comments that stand above the settings in their file.

    Args:
        tuned: the result of tuning.
        wish: the goal of tuning.
        about: data, model and versions, a line each.
    """
    best = {
        "certified": "the most often certified of those within 1 point (or one question) of the best accuracy",
        "accuracy": "the most accurate",
    }
    return [
        "Settings for robustrag, chosen by `robustrag tune`; read by settings= and --settings.",
        *about,
        f"chosen of {len(tuned.candidates)}: {best[wish.prefer]}",
        *in_words(tuned, wish),
    ]


def _cells(c: Candidate) -> tuple[str, ...]:
    return (
        c.label,
        _share(c.accuracy),
        _share(c.certified),
        _share(c.abstention),
        decimals(c.radius, 2),
        decimals(c.calls, 1),
    )


def _share(interval: Interval) -> str:
    if interval.mean is None or interval.low is None or interval.high is None:
        return "-"
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _questions(candidate: Candidate) -> str:
    return f"{candidate.accuracy.n} question{'s' * (candidate.accuracy.n != 1)}"


def _rule(candidate: Candidate) -> str:
    size = candidate.settings.get("group_size", 1)
    return f"{size} passages" if size != 1 else str(candidate.settings.get("group_by"))
