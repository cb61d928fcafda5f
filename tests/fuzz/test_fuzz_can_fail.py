"""The fuzzer itself: planted faults are found, a run can be stopped and resumed, and a superlinear cost is measured."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations._util import display
from robustrag_integrations.answers import answer
from robustrag_integrations.drawing import elements
from robustrag_integrations.prompts import Prompt, PromptTemplate
from tests.fuzz import scaling
from tests.fuzz.driver import Campaign, Endless, attempt, schedule, watched
from tests.fuzz.long import main
from tests.fuzz.source import Source
from tests.fuzz.target import Target
from tests.fuzz.targets import answers, pages, text


def found(target: Any, inputs: int = 400) -> bool:
    return any(attempt(Target("t", target), str(n)) is not None for n in range(inputs))


def test_a_terminal_escape_that_leaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_visible", lambda character: character)
    assert found(text.terminal)
    monkeypatch.undo()
    monkeypatch.setattr(answer, "printable", lambda given, limit=None: given[:limit])
    assert found(answers.answers)


def test_a_template_that_reads_its_values_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    render = PromptTemplate.render

    def twice(self: PromptTemplate, **values: str) -> Prompt:
        once = render(self, **values)
        return replace(once, text=once.text.replace("{query}", values["query"]))

    monkeypatch.setattr(PromptTemplate, "render", twice)
    assert found(text.rendering, 2000)


def test_markup_that_is_not_escaped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "escape", unescape)
    assert found(pages.notebook_answers)


def test_an_input_without_end_is_stopped() -> None:
    def endless() -> None:
        with watched(0.05):
            while True:
                pass

    with pytest.raises(Endless):
        endless()


def _odd(source: Source) -> None:
    assert source.below(50), "planted"


def test_a_resumed_campaign_ends_like_one_that_was_never_stopped(tmp_path: Path) -> None:
    chosen = (Target("a", _odd, 2), Target("b", text.abstentions, 1))
    whole = Campaign(chosen)
    list(whole.run(300))
    first = Campaign(chosen)
    list(first.run(120))
    first.save(tmp_path / "state.json")
    second = Campaign.load(tmp_path / "state.json", chosen)
    list(second.run(300))
    assert second.counts == whole.counts == {"a": 200, "b": 100}
    assert second.failed == whole.failed
    assert [f.key for f in second.failures.values()] == [f.key for f in whole.failures.values()]
    [failure] = whole.failures.values()
    assert attempt(chosen[0], failure.key) is not None


def test_targets_take_turns_in_proportion_to_their_share() -> None:
    turns = schedule((Target("often", _odd, 3), Target("seldom", _odd, 1)))
    assert sorted(t.name for t in turns) == ["often", "often", "often", "seldom"]


def test_the_command_says_what_it_found_and_how_to_try_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.long.targets", lambda: (Target("planted", _odd),))
    assert main(["--inputs", "200", "--folder", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    name = re.search(r"--replay (\S+)", said)
    assert name is not None
    assert main(["--replay", name[1]]) == 1
    assert "planted" in capsys.readouterr().out


@pytest.mark.parametrize("power", [1, 2])
def test_the_growth_of_a_cost_is_measured(monkeypatch: pytest.MonkeyPatch, power: int) -> None:
    clock = [0.0]
    monkeypatch.setattr(scaling.time, "process_time", lambda: clock[0])

    def costly(source: Source) -> None:
        source.keep("x" * 100 * source.stretch)
        clock[0] += (source.size / 1000) ** power

    measured = scaling.growth(Target("t", costly), "0")
    assert measured is not None
    assert measured.exponent == pytest.approx(power)
