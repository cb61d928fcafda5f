"""The fuzzer itself finds planted faults."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from robustrag_integrations._util import display
from robustrag_integrations.answers import answer
from robustrag_integrations.drawing import elements
from robustrag_integrations.text.prompts import Prompt, PromptTemplate
from tests.fuzz.long import Endless, attempt, main, watched
from tests.fuzz.source import Source, Target
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


def test_the_command_says_what_it_found_and_how_to_try_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.long.targets", lambda: (Target("planted", _odd),))
    assert main(["--rounds", "20"]) == 1
    name = re.search(r"--replay (\S+)", capsys.readouterr().out)
    assert name is not None
    assert main(["--replay", name[1]]) == 1
    assert "planted" in capsys.readouterr().out
