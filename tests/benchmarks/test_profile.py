"""Where a question's time goes: what belongs to no part counts for whoever called it."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks import profile


def test_files_belong_to_parts() -> None:
    assert profile.part_of("/x/robustrag_integrations/keywords/tag_network.py") == "tagging replies"
    assert profile.part_of("/x/robustrag_integrations/keywords/rules.py") == "keywords of tagged words"
    assert profile.part_of("/x/robustrag_integrations/answer.py") == "plans and reports"
    assert profile.part_of("/site-packages/langchain_core/runnables/base.py") == "LangChain and its adapter"
    assert profile.part_of("/lib/re/__init__.py") is None


def test_shares_go_to_callers_and_add_up() -> None:
    rules = ("/x/robustrag_integrations/keywords/rules.py", 1, "f")
    model = ("/x/robustrag_integrations/models/m.py", 1, "g")
    regex = ("~", 0, "search")
    stats = {
        rules: (1, 1, 1.0, 2.5, {}),
        model: (1, 1, 1.0, 1.5, {}),
        regex: (4, 4, 2.0, 2.0, {rules: (3, 3, 1.5, 1.5), model: (1, 1, 0.5, 0.5)}),
    }
    shares = profile.shares_of(stats)
    assert shares["keywords of tagged words"] == pytest.approx(2.5 / 4)
    assert shares["model calls"] == pytest.approx(1.5 / 4)
    assert sum(shares.values()) == pytest.approx(1)


def test_what_is_recorded_adds_up_to_the_time_without_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_milliseconds", lambda question: 8.0)
    found = profile.recorded(lambda number: asyncio.sleep(0))
    assert sum(found.values()) == pytest.approx(8.0)
