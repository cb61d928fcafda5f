"""Answers and certificates as HTML: escaped, complete, and with a style for everything."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations._util.display import visible
from robustrag_integrations._util.json_values import restored
from robustrag_integrations.answers.answer import VERDICTS, RobustAnswer, SourceReport
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.drawing.answer import answer_parts
from robustrag_integrations.drawing.elements import ATTRIBUTES, TAGS, Element, h, to_data, to_html
from robustrag_integrations.drawing.notebook import answer_html, certificate_html


class _Markup(HTMLParser):
    """What a parser makes of markup: the elements with their attributes, and the text between them."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(deadline=None)
@given(st.text(), st.text())
def test_text_and_attributes_come_back_from_a_parser_as_they_are_shown(text: str, title: str) -> None:
    markup = _Markup(to_html(h("p", text, title=title)))
    assert markup.elements == [("p", {"title": visible(title)})]
    assert markup.text == visible(text)


@pytest.mark.parametrize("tag", ["script", "a", "img", "iframe", "style", "form", "p onclick"])
def test_elements_that_could_act_cannot_be_made(tag: str) -> None:
    with pytest.raises(ValueError, match="not among the elements"):
        h(tag)


@pytest.mark.parametrize("name", ["onclick", "href", "src", "style", "id", "srcdoc", "x=1 onclick"])
def test_attributes_that_could_act_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match="not among the elements"):
        Element("p", "", {name: "x"}, ())


@settings(deadline=None)
@given(st.text(), st.one_of(st.none(), st.integers(0, 50)))
def test_visible_text_hides_nothing_can_be_written_and_keeps_what_is_harmless(text: str, limit: int | None) -> None:
    shown = visible(text, limit)
    shown.encode("utf-8")
    assert visible(shown) == shown
    assert all(c.isprintable() or c in "\n\t\u200c\u200d" or c.isspace() for c in shown)
    assert "\r" not in shown
    if text.isascii() and text.replace("\n", "").isprintable() and (limit is None or len(text) <= limit):
        assert shown == text


def test_hidden_characters_are_named() -> None:
    assert visible("a\u202eb\u2066c\x1b[0m") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+001B⟩[0m"
    assert visible("\u200b" * 2) == "⟨U+200B⟩⟨U+200B⟩"
    assert visible("\U000e0041\U000e0100x") == "⟨U+E0041⟩⟨U+E0100⟩x"
    assert visible("Z" + "\u0351" * 400) == "Z" + "\u0351" * 6 + "⟨and 394 more marks⟩"
    assert visible("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"


def test_data_and_markup_are_two_forms_of_one_tree() -> None:
    tree = h("p", "a", h("b", "c", cls="x", title="t"), None)
    assert to_data(tree) == ["p", 0, 0, "a", ["b", "x", {"title": "t"}, "c"]]
    assert to_html(tree) == '<p>a<b class="x" title="t">c</b></p>'


def _answer(**changed: Any) -> RobustAnswer:
    sources = (
        SourceReport(0, ("p0",), ("a.example",), "supports", "Ada", positions=(0,)),
        SourceReport(1, ("p1",), (), "differs", "Ben", truncated=True, positions=(1,)),
        SourceReport(2, ("p2",), (), "failed", error="timeout", positions=(2,)),
    )
    evidence = {"counts": {"ada": 3, "ben": 1}, "threshold": 2.0, "retained": ["ada"], "answering": 2}
    made = RobustAnswer("Ada", 1, False, "Who?", "keyword", sources, None, ("weak",), {}, evidence, model_calls=4)
    return replace(made, **changed)


def text_of(answer: RobustAnswer, passages: Any = None) -> str:
    return _Markup(to_html(h("div", *answer_parts(answer, passages)))).text


def test_a_cell_says_what_the_terminal_says() -> None:
    answer = _answer()
    text = _Markup(answer_html(answer)).text
    for name, value in answer.account():
        assert value in text, name
    for row in answer.source_rows():
        assert all(cell in text for cell in row), row
    assert "passages cut to fit" in text
    told = [status for status, meaning in VERDICTS.items() if meaning in text]
    assert (
        told
        == [s for s, meaning in VERDICTS.items() if meaning in answer.explain()]
        == ["supports", "differs", "failed"]
    )
    assert "kept from 2 on" in text


def test_a_cell_has_inline_styles_and_no_classes_scripts_or_addresses() -> None:
    markup = _Markup(answer_html(_answer()))
    assert {tag for tag, _ in markup.elements} <= TAGS
    assert all(names.keys() <= {*(a.lower() for a in ATTRIBUTES), "style"} for _, names in markup.elements)
    assert not re.search(r"url\(|expression|@import|javascript", " ".join(str(a) for _, a in markup.elements))


def _classes(node: Element | str) -> set[str]:
    if isinstance(node, str):
        return set()
    return set(node.cls.split()).union(*map(_classes, node.children))


def test_counts_come_with_kept_keywords_first_and_the_rest_is_counted() -> None:
    counts = {f"w{i:03d}": 1 for i in range(300)} | {"kept": 5}
    text = text_of(
        _answer(evidence={"counts": counts, "threshold": 3.0, "retained": ["kept"], "distinct_keywords": 900})
    )
    assert text.index("kept▮▮▮▮▮5") < text.index("w000▮1")
    assert "880 rarer ones are not shown" in text
    assert text.count("w0") == 19


def test_what_is_cut_says_how_much_there_was() -> None:
    passages = [{"text": "x" * 5000, "source": None, "planted": i == 1} for i in range(110)]
    sources = tuple(replace(_answer().sources[0], index=i, response="y" * 2000, positions=(i,)) for i in range(110))
    text = text_of(_answer(sources=sources), passages)
    assert "cut: 5,000 characters, the first 1,500 are shown" in text
    assert "cut: 2,000 characters" in text
    assert "10 more not shown" in text
    assert "x" * 1501 not in text
    assert "planted" in text


def test_a_certificate_shows_what_its_attacker_can_cause_and_an_undecided_one_is_no_guarantee(
    made_rows: list[dict[str, Any]],
) -> None:
    row = next(r for r in made_rows if r["setup"] == "keyword" and r["certificates"])
    found = restored(Certification, row["certificates"][0])
    text = _Markup(certificate_html(found)).text
    assert f"at worst {found.tau:g}" in text
    assert "What this attacker can cause" in text
    assert found.responses[0].text in text
    more = {"tau": 0.0, "certified": False, "stopped": "limit reached"}
    text = _Markup(certificate_html(replace(found, **more))).text
    for said in ("not decided: no proof, and no attack found", "limit reached"):
        assert said in text
    assert "proven" not in text
