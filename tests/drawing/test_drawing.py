"""Answers and certificates as HTML: escaped, complete, and with a style for everything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations.answers.answer import STATUSES, GroupReport, RobustAnswer
from robustrag_integrations.drawing.answer import answer_parts, passages_of
from robustrag_integrations.drawing.certificate import certificate_parts
from robustrag_integrations.drawing.elements import ATTRIBUTES, TAGS, Element, h, to_data, to_html
from robustrag_integrations.drawing.evidence import counts_table, steps_table
from robustrag_integrations.drawing.notebook import INLINE, answer_html, certificate_html, style_sheet
from robustrag_integrations.drawing.text import one_line, visible
from tests.evaluation.hostile import TEXTS


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


def test_hidden_characters_are_named_and_runs_of_them_counted() -> None:
    assert visible("a\u202eb\u2066c\x1b[0m") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+001B⟩[0m"
    assert visible("\u200b" * 500) == "⟨U+200B ×500⟩"
    assert visible("\U000e0041\U000e0100x") == "⟨U+E0041⟩⟨U+E0100⟩x"
    assert visible("Z" + "\u0351" * 400) == "Z" + "\u0351" * 6 + "⟨and 394 more marks⟩"
    assert visible("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"


def test_a_cut_text_ends_in_an_ellipsis_and_one_line_has_no_breaks() -> None:
    assert visible("abcdef", 3) == "abc…"
    assert one_line("a\n\n b\tc", 10) == "a b c"


def test_data_and_markup_are_two_forms_of_one_tree() -> None:
    tree = h("p", "a", h("b", "c", cls="x", title="t"), None)
    assert to_data(tree) == ["p", 0, 0, "a", ["b", "x", {"title": "t"}, "c"]]
    assert to_html(tree) == '<p>a<b class="x" title="t">c</b></p>'


def _answer(**changed: Any) -> dict[str, Any]:
    groups = (
        GroupReport(0, ("p0",), ("a.example",), "supports", "Ada", ("ada",)),
        GroupReport(1, ("p1",), (), "differs", "Ben", ("ben",), margin=2.0, truncated=True),
        GroupReport(2, ("p2",), (), "failed", error="timeout"),
    )
    settings = {"alpha": "3/10", "beta": 3}
    evidence = {"counts": {"ada": 3, "ben": 1}, "threshold": 2.0, "retained": ["ada"], "answering": 2}
    made = RobustAnswer("Ada", 1, False, "Who?", "keyword", groups, None, ("weak",), settings, evidence, model_calls=4)
    return {**made.to_dict(), **changed}


def test_a_cell_says_what_the_terminal_says() -> None:
    text = _Markup(answer_html(_answer())).text
    for shown in (
        *(
            "Who?",
            "Ada",
            "1: replacing any one group of the 3 retrieved cannot change this answer",
            "keyword (alpha 3/10, beta 3)",
        ),
        *("weak", "kept from 2 on", "differs", "lost by 2 groups", "passages cut to fit the model", "timeout", "p1"),
    ):
        assert shown in text, shown


def test_a_cell_has_inline_styles_and_no_classes_scripts_or_addresses() -> None:
    markup = _Markup(answer_html(_answer()))
    assert {tag for tag, _ in markup.elements} <= TAGS
    assert all(names.keys() <= {*(a.lower() for a in ATTRIBUTES), "style"} for _, names in markup.elements)
    assert not re.search(r"url\(|expression|@import|javascript", " ".join(str(a) for _, a in markup.elements))


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_answers_and_certificates_stay_text(name: str, dangerous_rows: list[dict[str, Any]]) -> None:
    row = next(r for r in dangerous_rows if r["key"] == f"hostile {name}")
    for cell in (answer_html(row["answer"]), certificate_html(row["certificates"][0])):
        cell.encode("utf-8")
        assert len(cell) < 400_000
        assert {tag for tag, _ in _Markup(cell).elements} <= TAGS


def test_every_class_that_is_drawn_has_a_style(made_rows: list[dict[str, Any]]) -> None:
    parts = [part for row in made_rows if row["answer"] for part in answer_parts(row["answer"], row["passages"])]
    used = {name for part in parts for name in _classes(part)}
    silent = {*(f"is-{status}" for status in STATUSES), "is-planted", "hit"}  # inline styles of rows
    assert used - INLINE.keys() - silent - {"groups", "counts", "said", "passage-fold", "quiet"} == set()
    for name, style in INLINE.items():
        assert f"{name[1:-1] if name.startswith('<') else f'.{name}'} {{ {style} }}" in style_sheet()


def _classes(node: Element | str) -> set[str]:
    if isinstance(node, str):
        return set()
    return set(node.cls.split()).union(*map(_classes, node.children))


def test_kept_keywords_come_first_and_the_rest_is_counted() -> None:
    counts = {f"w{i:03d}": 1 for i in range(300)} | {"kept": 5}
    table = counts_table({"counts": counts, "threshold": 3.0, "retained": ["kept"], "distinct_keywords": 900}, 6, 20)
    assert table is not None
    text = _Markup(to_html(table)).text
    assert text.index("kept5") < text.index("w000")
    assert "880 rarer ones are not shown" in text
    assert text.count("w0") == 19


def test_a_bar_is_as_long_as_its_count_and_the_threshold_stands_at_its_place() -> None:
    evidence = {"counts": {"a": 4, "b": 1}, "threshold": 2.0, "retained": ["a"], "corrupted_groups": 1}
    table = counts_table(evidence, 8, 10)
    assert table is not None
    markup = to_html(table)
    widths = [float(w) for w in re.findall(r'<rect class="mark (?:kept|lost)" x="0" y="1" width="([\d.]+)"', markup)]
    assert widths == [50.0, 12.5]
    assert markup.count('x1="25" x2="25"') == 2
    assert "dashed: what 1 corrupted group can add" in markup


def test_steps_are_told_with_their_lead_rival_and_where_the_model_answered_without_passages() -> None:
    evidence = {"gaps": [2.4, 0.3, 2.7], "answering": 3, "words": [" Ada", "\n", "<end>"], "rivals": [" Ben", "a"]}
    table = steps_table({**evidence, "fallback_steps": [1]}, 3)
    assert table is not None
    rows = [_Markup(to_html(row)).text for row in table.children[2].children]  # type: ignore[union-attr]
    assert rows == ["Ada2.480%Ben", "⏎0.310%ano-retrieval token", "<end>2.790%–"]


_NUMBER = st.floats(-1e14, 1e14)
_TEXTS = st.lists(st.text(max_size=3), max_size=4)
_WHOLES = st.lists(st.integers(-(10**9), 10**9), max_size=4)
_STEPS = st.fixed_dictionaries(
    {},
    optional={
        "counts": st.none() | st.dictionaries(st.text(max_size=2), _NUMBER, max_size=4),
        "gaps": st.none() | st.lists(_NUMBER, max_size=4),
        **dict.fromkeys(("words", "rivals", "retained", "always_retained"), st.none() | _TEXTS),
        **dict.fromkeys(("tokens", "fallback_steps"), st.none() | _WHOLES),
        **dict.fromkeys(
            ("answering", "threshold", "corrupted_groups", "untouched_groups", "distinct_keywords"), st.none() | _NUMBER
        ),
    },
)


@settings(deadline=None)
@given(_STEPS)
def test_whatever_fits_the_shape_of_a_row_is_drawn(evidence: dict[str, Any]) -> None:
    answer = _answer(evidence=evidence, settings={"eta": None})
    found = {"tau": 0.0, "certified": False, "corruption_size": 1, "attack": "injection", "references": [], "cases": 1}
    found |= {"metric": "m", "model_calls": 1, "stopped": None, "estimate": None, "warnings": [], "responses": []}
    for part in (*answer_parts(answer), *certificate_parts({**found, "evidence": evidence})):
        assert {tag for tag, _ in _Markup(to_html(part)).elements} <= TAGS


def test_passages_are_matched_to_groups_by_id_or_else_in_order() -> None:
    answer = _answer()
    by_id = [{"id": f"p{i}", "text": str(i)} for i in (2, 1, 0)]
    assert [[p["text"] for p in group] for group in passages_of(answer, by_id)] == [["0"], ["1"], ["2"]]
    in_order = [{"text": str(i)} for i in range(2)]
    assert [[p["text"] for p in group] for group in passages_of(answer, in_order)] == [["0"], ["1"], []]


def test_what_is_cut_says_how_much_there_was() -> None:
    passages = [{"text": "x" * 5000, "source": None, "planted": i == 1} for i in range(110)]
    groups = [{**_answer()["groups"][0], "response": "y" * 2000} for _ in range(110)]
    text = _Markup(to_html(h("div", *answer_parts(_answer(groups=groups), passages)))).text
    assert "cut: 5,000 characters, the first 1,500 are shown" in text
    assert "cut: 2,000 characters" in text
    assert "10 more not shown" in text
    assert "x" * 1501 not in text
    assert "planted" in text


def test_an_undecided_certificate_is_never_called_a_guarantee(made_rows: list[dict[str, Any]]) -> None:
    found = next(c for r in made_rows for c in r["certificates"])
    estimate = {"value": 0.5, "sample_size": 10, "seed": 0}
    undecided = {**found, "tau": 0.0, "certified": False, "stopped": "limit reached", "estimate": estimate}
    text = _Markup(certificate_html(undecided)).text
    assert "not decided: no proof, and no attack found" in text
    assert "0.5 from 10 samples; not a guarantee" in text
    assert "limit reached" in text
    assert "proven" not in text


def test_a_certificate_shows_what_its_attacker_can_cause(made_rows: list[dict[str, Any]]) -> None:
    row = next(r for r in made_rows if r["setup"] == "keyword" and r["certificates"])
    found = row["certificates"][0]
    text = _Markup(certificate_html(found)).text
    assert f"τ = {found['tau']:g}" in text
    assert "What this attacker can cause" in text
    assert found["responses"][0]["text"] in text
