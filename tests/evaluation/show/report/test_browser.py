"""The page and the notebook cells in a real Chromium: what they show, and that nothing in them acts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
from robustrag_integrations.drawing.notebook import answer_html, certificate_html
from robustrag_integrations.evaluation.show.report import page as page_module
from robustrag_integrations.evaluation.show.report import read_run, write_report
from tests.evaluation.hostile import TEXTS
from tests.evaluation.runs import names_in, questions, reads, write_run
from tests.evaluation.show.report.browser import Browser, Visit, running_browser
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


def _lines(visit: Visit) -> int:
    return int(visit.page.locator("#list tbody tr.line").count())


def _status(visit: Visit) -> str:
    return str(visit.page.locator("#status").inner_text())


def test_a_page_shows_its_tables_and_rows_and_nothing_is_refused(
    browser: Browser, page: Path, folder: Path, made_rows: list[dict[str, Any]]
) -> None:
    with browser.visit(page) as visit:
        assert visit.page.locator("h1").inner_text() == "run.jsonl"
        assert visit.page.locator("table.summary").count() >= 2
        assert _status(visit).startswith(f"1–50 of {len(made_rows)}")
        assert _lines(visit) == 50
        visit.keep(folder / "page.png")
        visit.assert_harmless()


def test_details_show_passages_responses_counts_outvoted_groups_radius_and_tau(browser: Browser, page: Path) -> None:
    with browser.visit(page) as visit:
        visit.page.select_option("select[name=setup]", label="keyword")
        visit.page.select_option("select[name=attack]", label="pia @first k'=1")
        text = visit.unfold().inner_text()
        for shown in ("planted", "differs", "lost by", "kept from", "Radius", "Attacker wants", "supports"):
            assert shown in text, shown
        assert visit.page.locator(".is-planted").count() == 1
        visit.page.locator(".is-planted summary").click()
        assert "please output" in visit.page.locator(".is-planted pre").inner_text()
        visit.page.select_option("select[name=attack]", label="no attack")
        assert "τ = 1" in visit.unfold().inner_text()
        visit.assert_harmless()


def test_details_of_votes_and_decoding_show_their_own_evidence(browser: Browser, page: Path) -> None:
    with browser.visit(page) as visit:
        visit.page.select_option("select[name=setup]", label="decoding")
        assert "Token by token" in visit.unfold().inner_text()
        assert visit.page.locator(".steps tbody th").all_inner_texts()[:2] == ["a", "c"]
        visit.page.select_option("select[name=setup]", label="voting")
        assert "Votes" in visit.unfold().inner_text()
        visit.assert_harmless()


def test_filters_narrow_the_list_and_are_cleared(browser: Browser, page: Path, made_rows: list[dict[str, Any]]) -> None:
    with browser.visit(page) as visit:
        visit.page.select_option("select[name=outcome]", label="hijacked")
        hijacked = [
            r for r in made_rows if r["error"] is None and r["scores"]["hijacked"] and r["attack"]["name"] != "none"
        ]
        assert f" of {len(hijacked)} " in _status(visit)
        visit.page.fill("input[name=text]", "MILL 1")
        of_mill = sum("mill 1" in r["question"] for r in hijacked)
        visit.page.locator("#status", has_text=f"of {of_mill} (of").wait_for()
        assert _lines(visit) == of_mill
        visit.page.fill("input[name=text]", "nowhere to be found")
        visit.page.wait_for_selector("text=No row matches")
        visit.page.click("#filters button[type=reset]")
        visit.page.locator("#status", has_text="1–50 of").wait_for()
        visit.assert_harmless()


def test_pages_are_turned_by_keyboard_alone(browser: Browser, page: Path, made_rows: list[dict[str, Any]]) -> None:
    with browser.visit(page) as visit:
        visit.page.focus("#pager button:nth-child(2)")
        visit.page.keyboard.press("Enter")
        assert _status(visit) == f"51–{len(made_rows)} of {len(made_rows)}"
        visit.page.focus("#list tbody tr.line .unfold")
        visit.page.keyboard.press("Space")
        assert visit.page.locator("tr.unfolded").count() == 1
        assert visit.page.get_attribute("#list tbody tr.line .unfold", "aria-expanded") == "true"
        visit.page.keyboard.press("Enter")
        assert visit.page.locator("tr.unfolded").count() == 0
        visit.assert_harmless()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_hostile_content_is_shown_as_text_and_does_nothing(
    browser: Browser, dangerous_page: Path, folder: Path, dangerous_rows: list[dict[str, Any]], dark: bool
) -> None:
    with browser.visit(dangerous_page, dark=dark) as visit:
        assert _lines(visit) == len(dangerous_rows)
        visit.page.evaluate("for (const button of document.querySelectorAll('.unfold')) button.click()")
        assert visit.page.locator("tr.unfolded").count() == len(dangerous_rows)
        visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        visit.page.evaluate(
            "document.querySelectorAll('*').forEach((e) => { e.dispatchEvent(new Event('mouseover')); })"
        )
        assert visit.fits()
        made = visit.page.evaluate("[...new Set([...document.body.querySelectorAll('*')].map((e) => e.localName))]")
        assert not {"img", "iframe", "style", "link", "animate", "object", "embed"} & set(made)
        assert visit.page.locator("script:not([type])").count() == 1
        assert visit.page.locator("a").count() == 1  # our own, to the list
        text = visit.page.locator("#list").inner_text()
        assert TEXTS["script end"] in text
        assert "⟨U+202E⟩" in text
        assert "⟨U+001B⟩[31m" in text
        assert not set("\u202e\u2066\u200f\u2028\x1b") & set(text)
        assert "cut: 100,000 characters" in text
        visit.keep(folder / f"hostile-{'dark' if dark else 'light'}.png")
        visit.assert_harmless()


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_screens_need_no_sideways_scrolling_of_the_page(
    browser: Browser, page: Path, dangerous_page: Path, folder: Path, width: int
) -> None:
    for path in (page, dangerous_page):
        with browser.visit(path, width=width) as visit:
            visit.unfold(2)
            assert visit.fits()
            visit.keep(folder / f"{path.stem}-{width}.png")
            visit.assert_harmless()


def test_without_scripts_the_tables_are_there(browser: Browser, page: Path, folder: Path) -> None:
    with browser.visit(page, script=False) as visit:
        assert visit.page.locator("table.summary").count() >= 2
        assert not visit.page.locator("#filters").is_visible()
        assert visit.page.locator("[data-unscripted]").is_visible()
        assert visit.fits()
        visit.keep(folder / "unscripted.png")
        assert visit.logged == []
        assert visit.requests == []


def test_a_printed_page_has_no_controls_and_keeps_what_is_unfolded(browser: Browser, page: Path, folder: Path) -> None:
    with browser.visit(page, dark=True) as visit:
        visit.unfold()
        visit.page.emulate_media(media="print", color_scheme="dark")
        assert not visit.page.locator("#filters").is_visible()
        assert not visit.page.locator("#pager button").first.is_visible()
        assert visit.page.locator("tr.unfolded").is_visible()
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        visit.page.pdf(path=folder / "printed.pdf")
        assert (folder / "printed.pdf").read_bytes().startswith(b"%PDF")
        visit.assert_harmless()


def test_many_rows_are_listed_fifty_at_a_time_and_what_is_left_out_is_said(
    browser: Browser, made_rows: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [{**made_rows[i % 40], "key": str(i), "question_id": str(i)} for i in range(1020)]
    run = read_run(write_run(folder / "many.jsonl", many))
    monkeypatch.setattr(page_module, "BYTES", 400_000)
    target = write_report(run, folder / "many.html")
    assert target.stat().st_size < 1_000_000
    with browser.visit(target) as visit:
        assert _lines(visit) == 50
        assert _status(visit) == "1–50 of 1,020"
        assert visit.page.locator("text=rows are left out: the page is limited to 0.4 MB").is_visible()
        visit.page.evaluate("for (let i = 0; i < 20; i++) document.querySelectorAll('#pager button')[1].click()")
        assert _status(visit) == "1,001–1,020 of 1,020"
        assert "Left out to keep this page small" in visit.unfold().inner_text()
        visit.assert_harmless()


def test_an_answer_and_a_certificate_draw_themselves_in_a_notebook(browser: Browser, folder: Path) -> None:
    defense = KeywordAggregation(ScriptedModel(reads, conclude=reads), extractor=names_in)
    question = questions(1)[0]
    answer = defense.answer(question.question, question.passages)
    [found] = defense.certify(question.question, question.passages, question.answers, corruption_size=[1])
    cells = answer._repr_html_() + found._repr_html_()
    with browser.visit(_notebook(folder / "notebook.html", cells)) as visit:
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
