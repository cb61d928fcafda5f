"""CONTRIBUTING.md: its snippets run, and the tests, files and make targets that it names exist."""

from __future__ import annotations

import re

import pytest

from robustrag_integrations.defenses.registry import METHODS
from tests.docs.pages import ROOT, Page, test_exists
from tests.package.test_floors import CORE

PAGE = Page.read("CONTRIBUTING.md")
RECIPES = [section for section in re.split(r"^## ", PAGE.text, flags=re.MULTILINE) if section.startswith("Add a")]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text.partition("\n")[0])
def test_a_recipe_has_a_snippet_that_runs_and_a_test_that_follows_it(recipe: str) -> None:
    kept = dict(METHODS)
    [snippet] = Page(recipe).snippets("python")
    try:
        exec(compile(snippet, "CONTRIBUTING.md", "exec", dont_inherit=True), {"__name__": "recipe"})
    finally:
        METHODS.clear()
        METHODS.update(kept)
    followed = recipe.partition("Followed by ")[2]
    assert "assert " in snippet
    assert Page(followed).tests


def test_every_test_and_file_that_is_named_exists() -> None:
    assert [span for span in PAGE.tests if not test_exists(span)] == []
    assert [span for span in PAGE.files if not ((ROOT / span).exists() or (ROOT / CORE / span).exists())] == []
