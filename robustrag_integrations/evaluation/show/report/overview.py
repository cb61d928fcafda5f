"""The head of the page: the finding in a sentence, and what was run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations._util.rounding import decimals, significant
from robustrag_integrations.answers.usage import Prices, told
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.planned import Missing, missing_rows
from robustrag_integrations.evaluation.score.run_file import Run
from robustrag_integrations.evaluation.score.summary import Line
from robustrag_integrations.evaluation.show.report.outcomes import spec_label

_IN_HEADLINE = 4  # setups named one by one
_MODELS_IN_HEADLINE = 3
_ALWAYS, _MOSTLY = 0.995, 0.3  # shares of abstentions that a headline says
_IN_LIST = 12  # setups of which rows are missing
_IN_HEADING = 6  # data sets and models named there


@dataclass(frozen=True)
class Places:
    """The values of each filter in the order of their appearance; a row knows them by number."""

    values: Mapping[str, tuple[str, ...]]
    read: Callable[[Mapping[str, Any]], tuple[str, ...]]

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        names: Sequence[str],
        read: Callable[[Mapping[str, Any]], tuple[str, ...]],
    ) -> Places:
        """The values that occur in these rows."""
        columns = list(zip(*map(read, rows), strict=True)) or [()] * len(names)
        return cls({name: tuple(dict.fromkeys(column)) for name, column in zip(names, columns, strict=True)}, read)

    def of_row(self, row: Mapping[str, Any]) -> list[int]:
        """A row's values by number."""
        return [values.index(v) for values, v in zip(self.values.values(), self.read(row), strict=True)]


def heading(run: Run, lines: Sequence[Line], prices: Prices | None) -> tuple[str, list[tuple[str, str]]]:
    """Return the finding, and facts about the run: names and values."""
    failed = sum(line.failed for line in lines)
    facts = [
        ("Data", _names(lines, lambda line: line.dataset)),
        ("Model", _names(lines, lambda line: line.model)),
        (
            "Rows",
            f"{len(run.rows):,}, from {_many(len({(r['dataset'], r['question_id']) for r in run.rows}), 'question')}",
        ),
    ]
    if said := [line for line in lines if line.repeats]:
        facts.append(("Repeats itself", one_line("; ".join(dict.fromkeys(line.repeats for line in said)), 400)))
    missing = missing_rows(run.header, run.rows)
    if missing:
        facts.append(("Missing", _what_is_missing(missing)))
    if spent := _spent(lines, prices):
        facts.append(("Spent", spent))
    if failed:
        facts.append(("Failed", f"{_many(failed, 'row')}, in no rate"))
    if left := len(run.bad) + run.torn:
        facts.append(("Left out", f"{_many(left, 'line')} that cannot be read; see the end of this page"))
    title = finding(lines)
    if missing:
        title = f"Not finished, {sum(m.rows for m in missing):,} rows are missing. {title}"
    return title, facts


def _what_is_missing(missing: Sequence[Missing]) -> str:
    """Describe the rows that an interrupted run has not made."""
    parts = [
        f"{m.rows:,} of {m.planned:,} of {m.setup}, {spec_label(m.attack)}, {m.dataset} ({m.task}), {m.model}"
        for m in missing[:_IN_LIST]
    ]
    more = [f"and of {len(missing) - _IN_LIST} more"] if len(missing) > _IN_LIST else []
    said = "; ".join(one_line(part, 200) for part in [*parts, *more])
    return f"{said}. The run was stopped, or is not done; the same command goes on with it."


def _spent(lines: Sequence[Line], prices: Prices | None) -> str:
    """Return the tokens and money of the calls that this run made; calls out of the cache took neither."""
    spent = told(line.spent for line in lines)
    if spent.prompt is None or spent.completion is None:
        return ""
    parts = [f"{decimals(spent.prompt)} tokens in, {decimals(spent.completion)} out"]
    if prices is not None and (money := prices.of(spent)) is not None:
        parts.append(f"{significant(money, 4)} in money")
    answers, knowing = sum(line.n for line in lines), sum(line.told for line in lines)
    return (
        f"{'; '.join(parts)} ({knowing:,} of {answers:,} answers told; calls out of the cache and certificates are not "
        "counted)"
    )


def finding(lines: Sequence[Line]) -> str:
    """Sum up the run in a sentence per model, with all its attacks and data sets taken together."""
    models = list(dict.fromkeys(line.model for line in lines))
    if len(models) > _MODELS_IN_HEADLINE:
        return f"{len(models)} models, each in tables of its own."
    said = [_finding_of([line for line in lines if line.model == model]) for model in models]
    if len(models) > 1:
        said = [f"With {one_line(m, 40)}: {text[:1].lower()}{text[1:]}" for m, text in zip(models, said, strict=True)]
    return " ".join(said) or "No answers yet."


def _finding_of(lines: Sequence[Line]) -> str:
    """Sum up one model's lines."""
    attacked, clean = [a for a in lines if not a.clean], [a for a in lines if a.clean]
    if asr := _pooled(attacked, lambda line: line.asr):
        return f"Under attack, {_compared(asr, attacked, 'gave the attacker’s answer to', 'to')}."
    if right := _pooled(clean, lambda line: line.accuracy):
        return f"Without an attacker, {_compared(right, clean, 'was right about', 'about')}."
    return "Answers, question by question."


def _pooled(lines: Sequence[Line], value: Callable[[Line], Interval]) -> dict[str, float]:
    """Return a rate per setup over all its lines, vanilla first."""
    found: dict[str, list[Interval]] = {}
    for line in sorted(lines, key=lambda line: line.defense != "vanilla"):
        if value(line).mean is not None:
            found.setdefault(line.setup, []).append(value(line))
    return {name: sum((i.mean or 0) * i.n for i in all_) / sum(i.n for i in all_) for name, all_ in found.items()}


def _compared(rates: Mapping[str, float], lines: Sequence[Line], verb: str, preposition: str) -> str:
    """Compare the rates of all setups, and note each one that mostly abstains, since no answer is no defence."""
    abstained = _pooled(lines, lambda line: line.abstention)
    silent = [name for name in rates if abstained.get(name, 0) >= _ALWAYS]
    speaking = {name: rate for name, rate in rates.items() if name not in silent}
    parts: list[str] = []
    for name, rate in speaking.items():
        what = f"{verb} {_share(rate)} of the questions" if not parts else f"{preposition} {_share(rate)}"
        often = abstained.get(name, 0)
        parts.append(f"{one_line(name, 40)} {what}{f' (it abstained on {_share(often)})' if often >= _MOSTLY else ''}")
    if len(parts) > _IN_HEADLINE:
        low, high = min([*speaking.values()][1:]), max([*speaking.values()][1:])
        parts[1:] = [f"the other {len(parts) - 1} setups {preposition} between {_share(low)} and {_share(high)}"]
    if silent:
        names = ", ".join(one_line(name, 40) for name in silent[:_IN_HEADLINE])
        more = f" and {len(silent) - _IN_HEADLINE} more" if len(silent) > _IN_HEADLINE else ""
        parts.append(f"{names}{more} abstained always")
    return ", ".join(parts)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{decimals(value, 0, 100)}%"


def _many(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' * (count != 1)}"


def _names(lines: Sequence[Line], read: Callable[[Line], str]) -> str:
    names = list(dict.fromkeys(map(read, lines)))
    more = [f"and {len(names) - _IN_HEADING} more"] if len(names) > _IN_HEADING else []
    return ", ".join([one_line(name, 60) for name in names[:_IN_HEADING]] + more) or "none"
