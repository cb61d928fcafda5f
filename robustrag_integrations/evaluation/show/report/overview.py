"""The upper half of the page: the finding in a sentence, the tables, the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.drawing.answer import facts
from robustrag_integrations.drawing.charts import chart
from robustrag_integrations.drawing.elements import Child, Element, h
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.planned import Missing, missing_rows
from robustrag_integrations.evaluation.score.rows import attack_of_row
from robustrag_integrations.evaluation.score.run_file import Run
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line, summarise
from robustrag_integrations.evaluation.show.figures import all_figures, setup_labels
from robustrag_integrations.evaluation.show.lines import EXPECTED_IN_WORDS, INTERVALS_IN_WORDS, warnings_in_sum
from robustrag_integrations.evaluation.show.report.outcomes import WORDS, outcome, spec_label
from robustrag_integrations.rounding import decimals, significant
from robustrag_integrations.usage import Prices, told

_CERTIFIED = (
    "Certified: whatever k′ passages among the retrieved say. What it takes to be retrieved is another question."
)
_IN_HEADLINE = 4  # setups named one by one
_MODELS_IN_HEADLINE = 3
_ALWAYS, _MOSTLY = 0.995, 0.3  # shares of abstentions that a headline says
_IN_LIST = 12  # setups of which rows are missing
_IN_HEADING = 6  # data sets and models named there
_ORDER = ("correct", "both", "hijacked", "wrong", "abstained", "unscored")  # of a bar's parts


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

    def of_line(self, line: Line) -> str | None:
        """The filter that shows a line's rows: `name=number` pairs; None where none of them is listed."""
        wanted = {
            "dataset": line.dataset,
            "model": line.model,
            "setup": line.setup,
            "attack": spec_label(line.attack),
        }
        if any(value not in self.values[name] for name, value in wanted.items()):
            return None
        return " ".join(f"{name}={self.values[name].index(value)}" for name, value in wanted.items())


class RunOverview:
    """The lines of a run, with how its rows ended."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], prices: Prices | None = None) -> None:
        self.lines, self.prices = summarise(rows, prices), prices
        self._outcomes: dict[tuple[Any, ...], Counter[str]] = {}
        for row in rows:
            key = (row["dataset"], row["task"], row["model"], row.get("top_k"), row["setup"], attack_of_row(row))
            self._outcomes.setdefault(key, Counter())[outcome(row)] += 1

    def outcomes(self, line: Line) -> Counter[str]:
        """How many rows of a line ended how."""
        return self._outcomes[line.dataset, line.task, line.model, line.top_k, line.setup, line.attack]


def heading(run: Run, findings: RunOverview) -> list[Element]:
    """The title, the finding, and what was run."""
    rows, lines = run.rows, findings.lines
    failed = sum(line.failed for line in lines)
    pairs = [
        ("Data", _names(lines, lambda line: line.dataset)),
        ("Model", _names(lines, lambda line: line.model)),
        ("Rows", f"{len(rows):,}, from {_many(len({(r['dataset'], r['question_id']) for r in rows}), 'question')}"),
    ]
    if said := [line for line in lines if line.repeats]:
        pairs.append(("Repeats itself", one_line("; ".join(dict.fromkeys(line.repeats for line in said)), 400)))
    missing = missing_rows(run.header, rows)
    if missing:
        pairs.append(("Missing", _what_is_missing(missing)))
    if spent := _spent(lines, findings.prices):
        pairs.append(("Spent", spent))
    if failed:
        pairs.append(("Failed", f"{_many(failed, 'row')}, in no rate"))
    if left := len(run.bad) + run.torn:
        pairs.append(("Left out", f"{_many(left, 'line')} that cannot be read; see the end of this page"))
    title = finding(lines)
    if missing:
        title = f"Not finished, {sum(m.rows for m in missing):,} rows are missing. {title}"
    warned = [h("li", one_line(text, 300)) for text in warnings_in_sum(lines)]
    return [
        h("p", one_line(run.name, 100), cls="file"),
        h("h1", title),
        facts(pairs),
        *([h("ul", *warned, cls="warnings")] if warned else []),
    ]


def _what_is_missing(missing: Sequence[Missing]) -> str:
    """What an interrupted run has not made."""
    parts = [
        f"{m.rows:,} of {m.planned:,} of {m.setup}, {spec_label(m.attack)}, {m.dataset} ({m.task}), {m.model}"
        for m in missing[:_IN_LIST]
    ]
    more = [f"and of {len(missing) - _IN_LIST} more"] if len(missing) > _IN_LIST else []
    said = "; ".join(one_line(part, 200) for part in [*parts, *more])
    return f"{said}. The run was stopped, or is not done; the same command goes on with it."


def _spent(lines: Sequence[Line], prices: Prices | None) -> str:
    """Tokens and money of the calls that this run made; calls out of the cache took neither."""
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


def overview(findings: RunOverview, places: Places) -> list[Element]:
    """Per data set and model a table without and one with an attacker."""
    parts = [_legend()] if findings.lines else []
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in findings.lines:
        groups.setdefault((line.dataset, line.task, line.model), []).append(line)
    for (dataset, task, model), lines in groups.items():
        if len(groups) > 1:
            parts.append(h("h3", f"{one_line(dataset, 80)} ({one_line(task, 10)}), {one_line(model, 80)}"))
        clean, attacked = [a for a in lines if a.clean], [a for a in lines if not a.clean]
        if clean:
            parts.append(_scrolling("Without an attacker", _clean_table(clean, findings, places)))
            if any(line.expected for line in clean):
                parts.append(h("p", EXPECTED_IN_WORDS.replace("ecacc k'", "Expected k′"), cls="note"))
            if any(line.certified for line in clean):
                parts.append(h("p", _CERTIFIED, cls="note"))
        if attacked:
            parts.append(_scrolling("Under attack", _attack_table(attacked, findings, places)))
    if parts:
        parts.append(h("p", INTERVALS_IN_WORDS, cls="note"))
    return parts or [h("p", "This run has no rows yet.")]


def _legend() -> Element:
    """What the parts of a bar mean."""
    kinds = [name for name in _ORDER if name != "unscored"]
    return h("ul", *(h("li", _key(name), f" {WORDS[name]}") for name in kinds), cls="legend")


def _key(name: str) -> Element:
    square = h("rect", width=10, height=10, cls=f"part {name}")
    return h("svg", square, aria_hidden="true", viewBox="0 0 10 10", width=11, height=11)


def figures(findings: RunOverview, seed: int | None = None) -> list[Element]:
    """All figures that there is data for; the run's seed stands in their titles."""
    return [chart(figure) for figure in all_figures(findings.lines, seed)]


def finding(lines: Sequence[Line]) -> str:
    """What the run shows, in a sentence per model, with all its attacks and data sets taken together."""
    models = list(dict.fromkeys(line.model for line in lines))
    if len(models) > _MODELS_IN_HEADLINE:
        return f"{len(models)} models, each in tables of its own."
    said = [_finding_of([line for line in lines if line.model == model]) for model in models]
    if len(models) > 1:
        said = [f"With {one_line(m, 40)}: {text[:1].lower()}{text[1:]}" for m, text in zip(models, said, strict=True)]
    return " ".join(said) or "No answers yet."


def _finding_of(lines: Sequence[Line]) -> str:
    """What one model's lines show."""
    attacked, clean = [a for a in lines if not a.clean], [a for a in lines if a.clean]
    if asr := _pooled(attacked, lambda line: line.asr):
        return f"Under attack, {_compared(asr, attacked, 'gave the attacker’s answer to', 'to')}."
    if right := _pooled(clean, lambda line: line.accuracy):
        return f"Without an attacker, {_compared(right, clean, 'was right about', 'about')}."
    return "Answers, question by question."


def _pooled(lines: Sequence[Line], value: Callable[[Line], Interval]) -> dict[str, float]:
    """A rate per setup over all its lines, vanilla first."""
    found: dict[str, list[Interval]] = {}
    for line in sorted(lines, key=lambda line: line.defense != "vanilla"):
        if value(line).mean is not None:
            found.setdefault(line.setup, []).append(value(line))
    return {name: sum((i.mean or 0) * i.n for i in all_) / sum(i.n for i in all_) for name, all_ in found.items()}


def _compared(rates: Mapping[str, float], lines: Sequence[Line], verb: str, preposition: str) -> str:
    """The rates of all setups; of one that mostly abstains it is said, since no answer is no defence."""
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


_TOKENS: tuple[tuple[str, Callable[[Line], str]], ...] = (
    ("Tokens in", lambda line: _plain(line.prompt_tokens, 0)),
    ("Cached", lambda line: _plain(line.cached_tokens, 0)),
    ("Tokens out", lambda line: _plain(line.completion_tokens, 0)),
    ("Cost", lambda line: "–" if line.money is None else significant(line.money)),
)


def _clean_table(lines: Sequence[Line], findings: RunOverview, places: Places) -> Element:
    sizes = sorted({(c.attack, c.corruption_size) for line in lines for c in line.certified})
    long = lines[0].task == "long"
    names = ["Setup", "Outcome", "Judge" if long else "Right"]
    against = sorted({e.corruption_size for line in lines for e in line.expected})
    names += [f"Certified k′={size}{', mod.' if attack == 'modification' else ''}" for attack, size in sizes]
    names += [f"Expected k′={size}" for size in against]
    tokens = [column for column in _TOKENS if any(column[1](line) != "–" for line in lines)]
    several = any(line.found.mean is not None for line in lines)
    names += [
        *(["All found"] if several else []),
        "Abstained",
        "Radius if right",
        "wrong / abst.",
        "Calls",
        *(name for name, _ in tokens),
        "Seconds",
        "× vanilla",
    ]
    rows, labels = [], setup_labels(lines)
    for line in lines:
        cells = [_score(line.judge, 1) if long else _score(line.accuracy)]
        for wanted in sizes:
            found = line.certified_against(*wanted)
            cells.append(_certified(found, 1 if long else 100) if found else h("td", "–", cls="number"))
        for size in against:
            held = line.expected_against(size)
            cells.append(_score(held.share) if held else h("td", "–", cls="number"))
        cells += [
            *([_score(line.found)] if several else []),
            _score(line.abstention),
            h("td", _plain(line.radius.mean, 2), cls="number"),
            h("td", f"{_plain(line.radius_wrong.mean, 2)} / {_plain(line.radius_abstained.mean, 2)}", cls="number"),
            h("td", _plain(line.model_calls, 1), cls="number"),
            *(h("td", value(line), cls="number") for _, value in tokens),
            h("td", "–" if line.seconds is None else significant(line.seconds), cls="number"),
            h("td", _plain(line.latency_ratio.mean, 2), cls="number"),
        ]
        rows.append(
            h(
                "tr",
                h("th", one_line(labels[line.setup, line.top_k], 80), scope="row"),
                _bar_cell(line, findings, places),
                *cells,
            )
        )
    return _table(names, rows)


def _attack_table(lines: Sequence[Line], findings: RunOverview, places: Places) -> Element:
    """A row per attack, a column per setup: how the answers ended, and the two rates."""
    labels = setup_labels(lines)
    by_attack: dict[Any, dict[str, Line]] = {}
    for line in lines:
        by_attack.setdefault(line.attack, {})[labels[line.setup, line.top_k]] = line
    rows = []
    for attack, found in by_attack.items():
        cells = [_attack_cell(found.get(setup), findings, places) for setup in labels.values()]
        rows.append(h("tr", h("th", spec_label(attack), scope="row"), *cells))
    return _table(["Attack", *(one_line(setup, 60) for setup in labels.values())], rows)


def _attack_cell(line: Line | None, findings: RunOverview, places: Places) -> Element:
    if line is None:
        return h("td", "–", cls="number")
    right = line.judge if line.task == "long" else line.accuracy
    scale = 1 if line.task == "long" else 100
    said = [
        h("span", h("b", _share(line.asr.mean)), " hijacked", _ends(line.asr, 100), cls="rate"),
        h(
            "span",
            h("b", _plain(right.mean, 0) if scale == 1 else _share(right.mean)),
            " right",
            _ends(right, scale),
            cls="rate",
        ),
    ]
    if line.found.mean is not None:
        said.append(h("span", h("b", _share(line.found.mean)), " all found", _ends(line.found, 100), cls="rate"))
    if line.failed:
        said.append(h("span", f"{line.failed} failed", cls="rate failed-note"))
    return _linked(line, places, _outcome_bar(findings.outcomes(line)), *said)


def _bar_cell(line: Line, findings: RunOverview, places: Places) -> Element:
    note = f"n = {line.n}" + (f", {line.failed} failed" if line.failed else "")
    return _linked(line, places, _outcome_bar(findings.outcomes(line)), h("span", note, cls="note"))


def _linked(line: Line, places: Places, *content: Child) -> Element:
    """A cell that leads to its rows."""
    pairs = places.of_line(line)
    if pairs is None:
        return h("td", *content, cls="outcomes")
    return h("td", *content, cls="outcomes", data_rows=pairs)


def _outcome_bar(counts: Counter[str]) -> Element:
    """How the answers ended, as parts of a bar."""
    known = [(name, counts[name]) for name in _ORDER if counts[name]]
    total = sum(count for _, count in known) or 1
    parts, x = [], 0.0
    for name, count in known:
        width = 100 * count / total
        parts.append(
            h("rect", h("title", f"{count} {WORDS[name]}"), x=x, y=0, width=width, height=10, cls=f"part {name}")
        )
        x += width
    said = ", ".join(f"{count} {WORDS[name]}" for name, count in known)
    size: dict[str, str] = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "width": "100%", "height": "12"}
    return h("svg", *parts, role="img", aria_label=said or "no answers", cls="outcome-bar", **size)


def _score(interval: Interval, scale: int = 100) -> Element:
    mean = _share(interval.mean) if scale == 100 else _plain(interval.mean, 1)
    return h("td", h("b", mean), _ends(interval, scale), cls="number")


def _certified(score: CertifiedScore, scale: int) -> Element:
    cell = _score(score.score, scale)
    if not score.undecided:
        return cell
    note = h("span", f"{score.undecided} undecided, counted as 0", cls="note")
    return h("td", *cell.children, note, cls="number")


def _ends(interval: Interval, scale: int) -> Element | None:
    if interval.low is None or interval.high is None:
        return None
    title = f"95% interval, {interval.method}" if interval.method else "95% interval"
    return h(
        "span", f" {decimals(interval.low, 0, scale)}–{decimals(interval.high, 0, scale)}", cls="ends", title=title
    )


def _table(names: Sequence[str], rows: Sequence[Element]) -> Element:
    head = h("tr", *(h("th", name, scope="col") for name in names))
    return h("table", h("thead", head), h("tbody", *rows), cls="summary")


def _scrolling(title: str, content: Element) -> Element:
    return h("div", h("h3", title), h("div", content, cls="scroll", role="region", aria_label=title, tabindex=0))


def _plain(value: float | None, digits: int, scale: int = 1) -> str:
    return "–" if value is None else decimals(value, digits, scale)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{decimals(value, 0, 100)}%"


def _many(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' * (count != 1)}"


def _names(lines: Sequence[Line], read: Callable[[Line], str]) -> str:
    names = list(dict.fromkeys(map(read, lines)))
    more = [f"and {len(names) - _IN_HEADING} more"] if len(names) > _IN_HEADING else []
    return ", ".join([one_line(name, 60) for name in names[:_IN_HEADING]] + more) or "none"
