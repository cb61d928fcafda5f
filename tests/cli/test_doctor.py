"""`robustrag doctor` says what is here and never what is secret; a model that was changed is found."""

from __future__ import annotations

from importlib import metadata

import pytest

from robustrag_integrations import __version__
from robustrag_integrations.cli import doctor, main

SECRET = "sk-very-secret-0123456789"


def test_versions_and_what_ships_are_told_and_no_value_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "HF_HOME", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{SECRET}@models.example/v1")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"robustrag: {__version__}, Python 3.")
    assert f"numpy: {metadata.version('numpy')}" in said.splitlines()
    assert said.count(": as released") == len(doctor.SHIPPED)
    assert SECRET not in said
    assert "models.example" not in said


def test_what_is_missing_or_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ["numpy>=9999", "no-such-package>=1 ; extra == 'local'"]
    monkeypatch.setattr(metadata, "requires", lambda name: needs)
    found = doctor.packages()
    assert "9999" in found["numpy"]
    assert found["no-such-package"] == "not installed"


def test_a_model_that_is_not_the_released_one_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(doctor.SHIPPED, "bundled reader", "another")
    assert main(["doctor"]) == 1
    assert "bundled reader: NOT AS RELEASED" in capsys.readouterr().out
