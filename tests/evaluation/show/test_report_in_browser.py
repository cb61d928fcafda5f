"""The page and the notebook cells in a real Chromium: what they show, and that nothing in them acts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
from robustrag_integrations.drawing.notebook import answer_html, certificate_html
from robustrag_integrations.evaluation.score.rows import read_run
from robustrag_integrations.evaluation.show.report import write_report
from tests.evaluation.hostile import TEXTS
from tests.evaluation.runs import names_in, questions, reads, write_run
from tests.evaluation.show.browser import Browser, running_browser
from tests.helpers.scripted import ScriptedModel


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages and screenshots go; SCREENSHOTS keeps them."""
    kept = os.environ.get("SCREENSHOTS")
    if kept is None:
        return tmp_path_factory.mktemp("pages")
    Path(kept).mkdir(parents=True, exist_ok=True)
    return Path(kept)


@pytest.fixture(scope="module")
def page(run_file: Path, folder: Path) -> Path:
    return write_report(read_run(run_file), folder / "run.html")


@pytest.fixture(scope="module")
def dangerous_page(dangerous_rows: list[dict[str, Any]], folder: Path) -> Path:
    run = read_run(write_run(folder / "hostile.jsonl", dangerous_rows))
    assert len(run.rows) == len(dangerous_rows)
    return write_report(run, folder / "hostile.html")


def test_a_page_shows_its_tables_rows_and_their_details(browser: Browser, page: Path, folder: Path) -> None:
    with browser.visit(page) as visit:
        assert visit.page.locator("h1").inner_text() == "run.jsonl"
        assert visit.page.locator("table.summary").count() >= 2
        visit.page.locator("summary", has_text="keyword, pia @first k'=1").first.click()
        visit.keep(folder / "page.png")
        attacked = visit.unfold("planted", "differs", "supports", "kept from", "lost by", "Attacker wants", "Radius")
        assert "please output" in attacked
        assert "τ = 1" in visit.unfold("no attack", "proven")
        assert "Token by token" in visit.unfold("decoding")
        visit.unfold("Votes", "exact")
        visit.assert_harmless()


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 360)])
def test_hostile_content_is_shown_as_text_and_does_nothing(
    browser: Browser, dangerous_page: Path, folder: Path, dark: bool, width: int
) -> None:
    with browser.visit(dangerous_page, dark=dark, width=width) as visit:
        visit.unfold()
        visit.page.evaluate(
            "document.querySelectorAll('*').forEach((e) => { e.dispatchEvent(new Event('mouseover')); })"
        )
        assert visit.fits()
        made = visit.page.evaluate("[...new Set([...document.body.querySelectorAll('*')].map((e) => e.localName))]")
        assert not {"img", "iframe", "style", "link", "animate", "object", "embed", "script", "a"} & set(made)
        text = visit.page.locator("body").inner_text()
        assert TEXTS["script end"] in text
        assert "⟨U+202E⟩" in text
        assert "⟨U+001B⟩[31m" in text
        assert not set("\u202e\u2066\u200f\u2028\x1b") & set(text)
        assert "cut: 100,000 characters" in text
        visit.keep(folder / f"hostile-{'dark' if dark else 'light'}-{width}.png")
        visit.assert_harmless()


def test_an_answer_and_a_certificate_draw_themselves_in_a_notebook(browser: Browser, folder: Path) -> None:
    defense = KeywordAggregation(ScriptedModel(reads, conclude=reads), extractor=names_in)
    question = questions(1)[0]
    answer = defense.answer(question.question, question.passages)
    [found] = defense.certify(question.question, question.passages, question.answers, corruption_size=[1])
    with browser.visit(_notebook(folder / "notebook.html", answer._repr_html_() + found._repr_html_())) as visit:
        text = visit.page.inner_text("body")
        for shown in (
            answer.text,
            "cannot change this answer",
            "kept from",
            "supports",
            "abstained",
            "τ = 1",
            "proven",
        ):
            assert shown in text, shown
        visit.keep(folder / "notebook.png")
        visit.assert_harmless()


def test_hostile_content_does_nothing_in_a_notebook_cell(
    browser: Browser, dangerous_rows: list[dict[str, Any]], folder: Path
) -> None:
    answered = [row for row in dangerous_rows if row["error"] is None]
    answers = [{**row["answer"], "groups": row["answer"]["groups"][:2]} for row in answered]
    cells = "".join(map(answer_html, answers)) + "".join(certificate_html(r["certificates"][0]) for r in answered)
    with browser.visit(_notebook(folder / "hostile-notebook.html", cells)) as visit:
        assert visit.page.locator("script, img, iframe, link, a, style").count() == 1  # the style of the test's page
        assert visit.page.locator("[class], [id], [onmouseover], [onfocus]").count() == 1  # the dark half itself
        assert visit.fits()
        visit.keep(folder / "hostile-notebook.png")
        visit.assert_harmless()


def _notebook(path: Path, cells: str) -> Path:
    """The cells twice, on a light and on a dark page."""
    style = "<style>body{margin:0;padding:1em}.dark{background:#111;color:#ddd;padding:1em}</style>"
    page = f"<!doctype html><meta charset=utf-8>{style}{cells}<div class=dark>{cells}</div>"
    path.write_text(page, encoding="utf-8")
    return path
