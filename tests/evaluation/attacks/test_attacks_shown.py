"""What attackers write is shown as text: without control characters on a terminal, without their markup in a page."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.drawing.answer import answer_parts
from robustrag_integrations.drawing.elements import to_html
from robustrag_integrations.evaluation.attacks import ATTACKS, plan_attack
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.plans.finish import link_warning

QUESTION = EvalQuestion("q", "Who runs the <b>mill</b>\x1b[31m\u202e?", ("Anna Lind",), "Bo <img src=x onerror=a()> Ek")
CLEAN = ["<script>alert(1)</script> Anna Lind runs the mill.\U000e0041\u200b"] * 3
_INVISIBLE = {"Cc", "Cf", "Co", "Cs"}


class Tags(HTMLParser):
    """The elements and comments of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on") or name == "src")]

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")


@pytest.mark.parametrize("name", [n for n, attack in ATTACKS.items() if attack.write])
def test_what_an_attack_writes_is_harmless_where_it_is_shown(name: str) -> None:
    attacked = plan_attack(name, QUESTION, CLEAN)
    said = attacked.passages[0].text
    group = GroupReport(
        0, ("planted0",), (said[:200],), "supports", said, (said[:300],), words=(said[:100],), positions=(0,)
    )
    answer = RobustAnswer(
        said,
        0,
        False,
        QUESTION.question,
        "vanilla",
        (group, replace(group, status="differs")),  # its words are named as a dissent, too
        warnings=(link_warning([said]),),
    )
    passages = [
        {"text": p.text, "source": p.source, "planted": f}
        for p, f in zip(attacked.passages, attacked.planted, strict=True)
    ]
    page = "".join(map(to_html, answer_parts(answer, passages[:1])))
    assert not {"script", "img", "comment", "onerror", "src"} & set(Tags(page).found)
    for shown in (page, answer.explain()):
        odd = {c for c in shown if unicodedata.category(c) in _INVISIBLE} - {"\n"}
        assert not odd, odd
