"""Models by name: one table says what there is, and a new entry is known everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.cli import main
from robustrag_integrations.models import providers
from robustrag_integrations.models.providers import PROVIDERS, SETTINGS, NamedModel, Provider, provider_of


def test_every_provider_reads_its_own_example_and_says_what_goes_with_it() -> None:
    for provider in PROVIDERS:
        name = {"PATH": "."}.get(provider.form, provider.form.replace("MODULE:FUNCTION", "my_models:answer"))
        assert provider_of(name) is provider
        for setting in SETTINGS:
            value: Any = {"base_url": "http://127.0.0.1:9/v1", "dtype": "float32"}.get(setting, 7)
            if setting in provider.takes:
                NamedModel(name, **{setting: value})
                continue
            with pytest.raises(ValueError, match=f"{setting} goes with .* not with '{name}'"):
                NamedModel(name, **{setting: value})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpt-4o", "unknown model 'gpt-4o': there is no folder of that name here. Give bundled, openai:NAME"),
        ("", "name='' must be a text"),
        ("openai: ", "must be openai:NAME"),
        ("openai-completions:@tokenizer", "must be openai-completions:NAME"),
        ("python:module", "must be python:MODULE:FUNCTION"),
        ("python:module:not a name", "must be python:MODULE:FUNCTION"),
        ("openai:m@v2", None),
        ("openai-completions:m@./tokenizer", None),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name: str, problem: str | None) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) if problem else nullcontext():
        NamedModel(name)


def test_fingerprints_tell_apart_what_answers_differently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "some_models.py").write_text("def a(prompt): return 'a'\ndef b(prompt): return 'b'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    models = [
        NamedModel("openai:m"), NamedModel("openai:n"), NamedModel("openai-completions:m"),
        NamedModel("openai:m", "http://a/v1"), NamedModel("openai:m", "http://b/v1"),
        NamedModel("openai:m", max_new_tokens=7), NamedModel("python:some_models:a"),
        NamedModel("python:some_models:b"), NamedModel(str(tmp_path)), NamedModel(str(tmp_path), max_context_tokens=9),
    ]  # fmt: skip
    found = [model.fingerprint() for model in models]
    assert len(set(found)) == len(found)
    assert found == [model.fingerprint() for model in models]
    # The same as ever: results and certificates that are to be resumed carry it.
    assert found[0] == "a2d9519782e6b5ee"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")
    assert models[0].fingerprint() != found[0]
    assert models[3].fingerprint() == found[3]
    (tmp_path / "some_models.py").write_text("def a(prompt): return 'c'\n")
    assert models[6].fingerprint() != found[6]
    (tmp_path / "config.json").write_text("{ }")
    assert models[8].fingerprint() != found[8]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A provider that is nothing but one entry."""

    def load(said: str, settings: Mapping[str, Any]) -> CallableModel:
        length = settings.get("max_new_tokens", 100)
        return CallableModel(lambda prompt: said[:length], name=f"toy:{said}")

    def parts(name: str, settings: Mapping[str, Any]) -> Iterator[bytes]:
        yield name.encode()

    takes = frozenset({"max_new_tokens"})
    entry = Provider("toy:WORDS", "says these words", takes, load, parts, ".+", gives_probabilities=False)
    monkeypatch.setattr(providers, "PROVIDERS", (entry, *PROVIDERS))
    return entry


def test_a_new_entry_is_known_to_the_command_line(
    toy: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("The mill is run by Anna Lind.")
    assert main(["ask", "Who runs the mill?", "--docs", str(tmp_path), "--model", "toy:Anna Lind"]) == 0
    assert "anna lind" in capsys.readouterr().out.casefold()
    assert main(["ask", "q", "--docs", str(tmp_path), "--model", "toy:"]) == 2
    assert "must be toy:WORDS" in capsys.readouterr().err
