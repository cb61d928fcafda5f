"""The page about a run whose file may hold anything."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from robustrag_integrations.evaluation.score.rows import NotARunError, read_run
from robustrag_integrations.evaluation.show.report import report_page
from tests.evaluation.runs import HEADER, NO_ATTACK, questions, row_of, setups
from tests.fuzz.checks import assert_short_and_harmless, assert_valid_unicode
from tests.fuzz.hostile import damaged, json_line, name, text, value
from tests.fuzz.source import Source, Target, scratch
from tests.fuzz.targets.pages import TAGS, InertPage

_FIXED = frozenset({"schema", "status", "task", "mode"})  # what is none of a few words makes the row no row


@cache
def _row() -> dict[str, Any]:
    return row_of(questions(1)[0], "keyword", setups()["keyword"], NO_ATTACK)


def _stained(source: Source, whole: Any) -> Any:
    """The row with many of its texts replaced by hostile ones, and sometimes a value by one of another type."""
    if isinstance(whole, dict):
        return {k: v if k in _FIXED and source.below(50) else _stained(source, v) for k, v in whole.items()}
    if isinstance(whole, list):
        return [_stained(source, v) for v in whole]
    if source.chance(2000):
        return value(source)
    return name(source) if isinstance(whole, str) and source.chance(3) else whole


def a_stained_row(source: Source, number: int) -> dict[str, Any]:
    """A row of a run whose every text may be hostile."""
    return {**_stained(source, _row()), "key": str(number)}


class _Page(InertPage):
    """Reads a whole page, in which nothing may run, load or link."""

    allowed = TAGS | {"html", "head", "meta", "link", "title", "style", "body"}
    void = frozenset({"meta", "link"})

    def handle_decl(self, decl: str) -> None:
        assert decl == "doctype html"


def reports(source: Source) -> None:
    """Nothing in a run's file becomes markup; what is not a row is left out, and the page says so."""
    rows = [json.dumps(a_stained_row(source, n)) for n in range(source.below(3))]
    rows += source.some(lambda: json_line(source, {"schema": "robustrag/eval/3", "key": "a", "answer": {}}), 1)
    header = json.dumps(HEADER) if source.chance(2) else json_line(source, {**HEADER, "config": {"a": text(source, 2)}})
    path = scratch() / "run.jsonl"
    whole = "".join(line + "\n" for line in [header, *rows]).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(source, whole) if source.chance(5) else whole)
    try:
        run = read_run(path)
    except NotARunError as refused:
        assert_short_and_harmless(str(refused))
        return
    markup = report_page(run)
    assert_valid_unicode(markup)
    page = _Page()
    page.feed(markup)
    page.close()


TARGETS = (Target("reports", reports, 1),)
