"""Prompts, and what they say beside their text."""

from __future__ import annotations

import pytest

from robustrag_integrations.prompts import NO_INFORMATION, prompts_for

OPTIONS = ("Bo Ek", "Ida Moe", NO_INFORMATION)


@pytest.mark.parametrize(
    ("context", "likely"),
    [
        ("It was built by Ida Moe.", "Ida Moe"),
        ("Ida Moe, and not Bo Ek, built it.", "Ida Moe"),
        ("Bo Ek and Ida Moe built it.", "Bo Ek"),
        ("Nobody is named here.", NO_INFORMATION),
        ("", NO_INFORMATION),
        (f"{NO_INFORMATION}. Bo Ek", NO_INFORMATION),
    ],
)
def test_the_likely_one_of_several_drafts_is_the_one_that_the_passages_name_first(context: str, likely: str) -> None:
    template = prompts_for("multiple_choice").isolated
    prompt = template.render(OPTIONS, context=context, query="Did Bo Ek build it?", choices="A. Bo Ek\nB. Ida Moe")
    assert prompt.likely_draft == likely


def test_no_draft_is_likely_where_there_is_no_choice_or_no_passage() -> None:
    prompts = prompts_for("short_answer")
    for drafts in ((), ("Bo Ek",)):
        assert prompts.isolated.render(drafts, context="Bo Ek built it.", query="Who built it?").likely_draft is None
    assert prompts.no_retrieval.render(OPTIONS, query="Who built it?").likely_draft is None
