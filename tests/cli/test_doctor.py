"""`robustrag doctor` says what is here and never what is secret; a model that was changed is found."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from robustrag_integrations import __version__
from robustrag_integrations.cli import doctor, main

SECRET = "sk-very-secret-0123456789"


def test_its_first_line_is_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--quick"]) == 0
    first, blank, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"robustrag {__version__}, Python 3.")
    assert first.endswith("isolation not probed; shipped models as released")
    assert blank == ""
    for title in ("packages", "extras", "isolation", "shipped"):
        assert title in rest


def test_no_value_of_the_environment_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "HF_HOME", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{SECRET}@models.example/v1")
    for form in ([], ["--json"]):
        main(["doctor", "--quick", *form])
        said = capsys.readouterr().out
        assert SECRET not in said
        assert "models.example" not in said
    found = json.loads(said)
    assert found["schema"] == "robustrag/doctor/1"
    assert found["packages"]["numpy"] == metadata.version("numpy")


def test_a_model_that_is_not_the_released_one_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(doctor.SHIPPED, "bundled reader", "another")
    assert main(["doctor", "--quick"]) == 1
    said = capsys.readouterr().out
    assert "shipped models NOT AS RELEASED" in said.splitlines()[0]
    assert "bundled reader: NOT AS RELEASED: reinstall" in said


def test_the_isolation_probe_says_how_many_rows_it_pads_to() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    found = doctor.isolation_here()
    assert found["isolation"].startswith("probed: ")
    assert found["in_short"] in ("exact", "with float noise")
    assert "tarsk" in found["answer"].lower()
