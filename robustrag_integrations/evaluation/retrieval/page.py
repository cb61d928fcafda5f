"""The part of the report page about a measurement."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.drawing.charts import chart
from robustrag_integrations.drawing.elements import Element, h
from robustrag_integrations.drawing.text import one_line
from robustrag_integrations.evaluation.retrieval.figures import retrieval_figures
from robustrag_integrations.evaluation.retrieval.summary import RetrievalLine
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.rounding import decimals

_MOST_LINES = 2000


def retrieval_parts(lines: Sequence[RetrievalLine]) -> list[Element]:
    """A sentence, the figures, and a table; nothing for no lines."""
    if not lines:
        return []
    shown = [line for line in lines if line.m][:_MOST_LINES]
    head = h("tr", *(h("th", name, scope="col") for name in _header(shown)))
    table = h("table", h("thead", head), h("tbody", *(_row(line, shown) for line in shown)), cls="summary")
    title = "Planted documents among the retrieved"
    region = h("div", h("h3", title), h("p", retrieval_finding(lines)), h("p", _NOTE, cls="note"))
    charts = [chart(figure) for figure in retrieval_figures(lines)]
    return [
        h("section", region, h("div", table, cls="scroll", role="region", aria_label=title, tabindex=0)),
        h("section", *charts, cls="figures"),
    ]


def retrieval_finding(lines: Sequence[RetrievalLine]) -> str:
    """What was measured, in a sentence; empty where nothing was."""
    planted = [line for line in lines if line.m and line.rho.mean is not None]
    if not planted:
        return ""
    worst = max(planted, key=lambda line: (line.share.mean or 0, -line.m))
    return (
        f"With {worst.m} planted document{'s' * (worst.m != 1)} ({one_line(worst.attack, 40)}, "
        f"{one_line(worst.retriever, 60)}), an attacker owns {decimals(worst.rho.mean or 0, 1)} of "
        f"{decimals(worst.groups or 0, 1)} votes on average where one vote is a {one_line(worst.rule, 40)}."
    )


_NOTE = (
    "m documents are planted into the corpus; rho counts the votes among the retrieved that hold a planted text. It is "
    "measured with these texts and this retriever and is no bound. Certified accuracy (cacc) is against as many "
    "corrupted passages among the retrieved as were planted there, question by question."
)


def _header(lines: Sequence[RetrievalLine]) -> list[str]:
    fixed = [
        "Data",
        "Retriever",
        "k",
        "Attack",
        "One vote",
        "m",
        "ρ",
        "Median",
        "90%",
        "Worst",
        "Votes",
        "Owned",
        "Half",
    ]
    return [*fixed, *(f"cacc {one_line(setup, 40)}" for setup in _setups(lines))]


def _setups(lines: Sequence[RetrievalLine]) -> list[str]:
    return list(dict.fromkeys(setup for line in lines for setup in line.cacc))


def _row(line: RetrievalLine, lines: Sequence[RetrievalLine]) -> Element:
    names = [one_line(text, 60) for text in (line.dataset, line.retriever, str(line.top_k), line.attack, line.rule)]
    numbers = [str(line.m), _mean(line.rho, 1), f"{line.middle:g}", f"{line.high:g}", str(line.worst)]
    numbers += [decimals(line.groups or 0, 1), _mean(line.share, 100), _mean(line.half, 100)]
    numbers += [_mean(line.cacc.get(setup), 100) for setup in _setups(lines)]
    return h("tr", *(h("td", name) for name in names), *(h("td", number, cls="number") for number in numbers))


def _mean(interval: Interval | None, scale: int) -> str:
    if interval is None or interval.mean is None:
        return "–"
    mean = decimals(interval.mean, 2) if scale == 1 else f"{decimals(interval.mean, 0, 100)}%"
    if interval.low is None or interval.high is None:
        return mean
    digits = 1 if scale == 1 else 0
    return f"{mean} {interval.low * scale:.{digits}f}–{interval.high * scale:.{digits}f}"
