"""The registry: what it says is what the methods do, and a new method is one folder and one entry."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method, method_of
from tests.contract.drivers import FRAMEWORKS, driver
from tests.contract.script import Script, truthful
from tests.defenses.toy.defense import UNANIMITY
from tests.helpers.scripted import ScriptedDecodingModel


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Method:
    monkeypatch.setitem(METHODS, "toy", UNANIMITY)
    return UNANIMITY


# --- what the table says


@pytest.mark.parametrize("method", [*METHODS.values(), BASELINES["vanilla"]], ids=lambda m: m.name)
def test_a_class_takes_exactly_the_declared_settings(method: Method) -> None:
    model: Any = ScriptedDecodingModel(lambda text, prefix: []) if method.needs_probabilities else CallableModel(str)
    assert method.build(model, **{s.name: s.default for s in method.settings})
    for name in {s.name for m in METHODS.values() for s in m.settings} - {s.name for s in method.settings}:
        with pytest.raises((TypeError, ValueError), match=name):
            method.build(model, **{name: 1})


def test_an_unknown_method_or_task_is_named_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'kyword' is unknown; did you mean 'keyword'\? It is one of 'keyword', "):
        method_of("kyword")
    with pytest.raises(ValueError, match="'vanilla' is a baseline"):
        method_of("vanilla")
    with pytest.raises(ValueError, match=r"keyword does .* use MajorityVoting for multiple choice"):
        METHODS["keyword"].check_task("multiple_choice")
    with pytest.raises(TypeError, match=r"gama.; did you mean gamma"):
        METHODS["decoding"].check_names(["gama"])


# --- a fourth method


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_toy_answers_in_both_integrations(name: str, toy: Method) -> None:
    framework, script = driver(name), Script(lambda prompt: "Tarsk")
    said = framework.engine(script, truthful(4), method="toy", at_least=2).ask()
    assert (said.text, said.answer.method) == ("Tarsk", "toy")
    with pytest.raises(TypeError, match=r"unknown argument .at_lest"):
        framework.engine(script, [], method="toy", at_lest=2)
