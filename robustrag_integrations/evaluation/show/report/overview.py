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
from robustrag_integrations.evaluation.score.rows import attack_of_row
from robustrag_integrations.evaluation.score.run_file import Run
from robustrag_integrations.evaluation.score.summary import CertifiedScore, Line, summarise
from robustrag_integrations.evaluation.show.figures import setup_labels, setup_styles
from robustrag_integrations.evaluation.show.lines import EXPECTED_IN_WORDS
from robustrag_integrations.evaluation.show.parts import drawable_figures
from robustrag_integrations.evaluation.show.report.outcomes import WORDS, outcome, spec_label
from robustrag_integrations.usage import Prices

_CERTIFIED = (
    "Certified: whatever k′ passages among the retrieved say. What it takes to be retrieved is another question, which "
    "robustrag eval --retrieve measures."
)
_IN_HEADLINE = 4  # setups named one by one
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
        self.lines = summarise(rows, prices)
        self._outcomes: dict[tuple[Any, ...], Counter[str]] = {}
        for row in rows:
            key = (row["dataset"], row["task"], row["model"], row.get("top_k"), row["setup"], attack_of_row(row))
            self._outcomes.setdefault(key, Counter())[outcome(row)] += 1

    def outcomes(self, line: Line) -> Counter[str]:
        """How many rows of a line ended how."""
        return self._outcomes[line.dataset, line.task, line.model, line.top_k, line.setup, line.attack]


def heading(run: Run, findings: RunOverview, besides: str = "") -> list[Element]:
    """The title, the finding (`besides` where there are no rows), and what was run."""
    rows, lines = run.rows, findings.lines
    failed = sum(line.failed for line in lines)
    pairs = [
        ("Data", _names(lines, lambda line: line.dataset)),
        ("Model", _names(lines, lambda line: line.model)),
        ("Rows", f"{len(rows):,}, from {_many(len({(r['dataset'], r['question_id']) for r in rows}), 'question')}"),
    ]
    if said := [line for line in lines if line.repeats]:
        pairs.append(("Repeats itself", one_line("; ".join(dict.fromkeys(line.repeats for line in said)), 400)))
    if failed:
        pairs.append(("Failed", f"{_many(failed, 'row')}, in no rate"))
    if left := len(run.bad) + run.torn:
        pairs.append(("Left out", f"{_many(left, 'line')} that cannot be read; see the end of this page"))
    title = _finding(lines) if lines or not besides else besides
    return [h("p", one_line(run.name, 100), cls="file"), h("h1", title), facts(pairs)]


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
    styles = setup_styles(findings.lines)
    return [chart(figure, styles) for figure in drawable_figures(findings.lines, seed)]


def _finding(lines: Sequence[Line]) -> str:
    """What the run shows, in a sentence, with all attacks taken together."""
    asr = _pooled([a for a in lines if not a.clean], lambda line: line.asr)
    if asr:
        return f"Under attack, {_compared(asr, 'gave the attacker’s answer to', 'to')}."
    right = _pooled(lines, lambda line: line.accuracy)
    if right:
        return f"Without an attacker, {_compared(right, 'was right about', 'about')}."
    return "Answers, question by question." if lines else "No answers yet."


def _pooled(lines: Sequence[Line], value: Callable[[Line], Interval]) -> dict[str, float]:
    """A rate per setup over all its lines, vanilla first."""
    found: dict[str, list[Interval]] = {}
    for line in sorted(lines, key=lambda line: line.defense != "vanilla"):
        if value(line).mean is not None:
            found.setdefault(line.setup, []).append(value(line))
    return {name: sum((i.mean or 0) * i.n for i in all_) / sum(i.n for i in all_) for name, all_ in found.items()}


def _compared(rates: Mapping[str, float], verb: str, preposition: str) -> str:
    (first, rate), *others = ((one_line(name, 40), rate) for name, rate in rates.items())
    said = f"{first} {verb} {rate:.0%} of the questions"
    if len(others) >= _IN_HEADLINE:
        low, high = min(r for _, r in others), max(r for _, r in others)
        return f"{said}, the other {len(others)} setups {preposition} between {low:.0%} and {high:.0%}"
    return ", ".join([said, *(f"{name} {preposition} {r:.0%}" for name, r in others)])


_TOKENS: tuple[tuple[str, Callable[[Line], float | None], str], ...] = (
    ("Tokens in", lambda line: line.prompt_tokens, ".0f"),
    ("Cached", lambda line: line.cached_tokens, ".0f"),
    ("Tokens out", lambda line: line.completion_tokens, ".0f"),
    ("Cost", lambda line: line.money, ".3g"),
)


def _clean_table(lines: Sequence[Line], findings: RunOverview, places: Places) -> Element:
    sizes = sorted({(c.attack, c.corruption_size) for line in lines for c in line.certified})
    long = lines[0].task == "long"
    names = ["Setup", "Outcome", "Judge" if long else "Right"]
    against = sorted({e.corruption_size for line in lines for e in line.expected})
    names += [f"Certified k′={size}{', mod.' if attack == 'modification' else ''}" for attack, size in sizes]
    names += [f"Expected k′={size}" for size in against]
    tokens = [column for column in _TOKENS if any(column[1](line) is not None for line in lines)]
    names += ["Abstained", "Radius", "Calls", *(name for name, _, _ in tokens), "Seconds", "× vanilla"]
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
            _score(line.abstention),
            h("td", _plain(line.radius.mean, ".2f"), cls="number"),
            h("td", _plain(line.model_calls, ".1f"), cls="number"),
            *(h("td", _plain(value(line), form), cls="number") for _, value, form in tokens),
            h("td", _plain(line.seconds, ".3g"), cls="number"),
            h("td", _plain(line.latency_ratio.mean, ".2f"), cls="number"),
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
        h("span", h("b", _plain(line.asr.mean, ".0%")), " hijacked", _ends(line.asr, 100), cls="rate"),
        h(
            "span",
            h("b", _plain(right.mean, ".0f" if scale == 1 else ".0%")),
            " right",
            _ends(right, scale),
            cls="rate",
        ),
    ]
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
    mean = _plain(interval.mean, ".0%" if scale == 100 else ".1f")
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
    return h("span", f" {interval.low * scale:.0f}–{interval.high * scale:.0f}", cls="ends", title="95% interval")


def _table(names: Sequence[str], rows: Sequence[Element]) -> Element:
    head = h("tr", *(h("th", name, scope="col") for name in names))
    return h("table", h("thead", head), h("tbody", *rows), cls="summary")


def _scrolling(title: str, content: Element) -> Element:
    return h("div", h("h3", title), h("div", content, cls="scroll", role="region", aria_label=title, tabindex=0))


def _plain(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _many(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' * (count != 1)}"


def _names(lines: Sequence[Line], read: Callable[[Line], str]) -> str:
    names = list(dict.fromkeys(map(read, lines)))
    more = [f"and {len(names) - _IN_HEADING} more"] if len(names) > _IN_HEADING else []
    return ", ".join([one_line(name, 60) for name in names[:_IN_HEADING]] + more) or "none"
