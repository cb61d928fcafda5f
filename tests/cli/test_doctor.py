"""`robustrag doctor` says what is here and never what is secret; a model that was changed is found."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from robustrag_integrations import __version__
from robustrag_integrations.cli import diagnosis, main
from tests.needs import NEEDS, skips

ROOT = Path(__file__).parents[2]
SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def no_list_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "skipped_tests", lambda: [{"why": "no Chromium", "tests": ["tests/a.py"]}])


def test_its_first_line_is_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--quick"]) == 0
    first, blank, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"robustrag {__version__}, Python 3.")
    assert first.endswith("isolation not probed; shipped models as released")
    assert blank == ""
    for title in ("system", "packages", "extras", "devices", "shipped", "environment"):
        assert title in rest
    assert "  no Chromium: tests/a.py" in rest


def test_its_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "robustrag/doctor/1"
    assert found["packages"]["numpy"] == metadata.version("numpy")
    assert found["isolation"] == {"skipped": "--quick"}
    assert found["devices"]["cpu_threads"] >= 1


def test_no_value_of_the_environment_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*diagnosis._NAMES, *diagnosis._NUMBERS):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{SECRET}@models.example/v1")
    for form in ([], ["--json"]):
        main(["doctor", "--quick", *form])
        said = capsys.readouterr().out
        assert SECRET not in said
        assert "models.example" not in said
    assert set(diagnosis.environment_here().values()) == {"set"}
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert diagnosis.environment_here()["OMP_NUM_THREADS"] == "4"
    assert diagnosis.environment_here()["OPENAI_API_KEY"] == "not set"


def test_a_model_that_is_not_the_released_one_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(diagnosis.SHIPPED, "bundled reader", "another")
    assert main(["doctor", "--quick"]) == 1
    said = capsys.readouterr().out
    assert "shipped models NOT AS RELEASED" in said.splitlines()[0]
    assert "(NOT AS RELEASED: reinstall)" in said


def test_what_an_extra_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [
        'numpy>=99; extra == "a"',
        'no-such-package; extra == "a"',
        'robustrag-integrations[a]; extra == "b"',
        "numpy>=1",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    lacking = ["no-such-package", f"numpy>=99 ({metadata.version('numpy')} is here)"]
    assert sorted(diagnosis._lacking("a")) == lacking
    assert sorted(diagnosis._lacking("b")) == lacking
    assert diagnosis.packages_here().keys() == {"numpy"}


def test_without_its_metadata_it_still_says_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    for function in ("requires", "metadata", "version"):
        monkeypatch.setattr(metadata, function, missing)
    found = diagnosis.diagnosis(quick=True)
    assert (found["packages"], found["extras"]) == ({}, {})


def test_a_folder_of_tests_beside_an_installed_package_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "needs.py").write_text("raise SystemExit('run')")
    assert not diagnosis._is_checkout(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\n')
    assert not diagnosis._is_checkout(tmp_path)
    assert diagnosis._is_checkout(ROOT)


def test_the_isolation_probe_says_how_many_rows_it_pads_to() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    found = diagnosis.isolation_here()
    assert found["isolation"].startswith("probed: ")
    assert found["in_short"] in ("exact", "with float noise")
    assert "tarsk" in found["answer"].lower()


def test_a_probe_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from robustrag_integrations import reader

    def gone() -> Path:
        raise FileNotFoundError("the bundled reader is missing")

    pytest.importorskip("torch")
    monkeypatch.setattr(reader, "reader_path", gone)
    assert "is missing" in diagnosis.isolation_here()["why"]


def test_every_place_that_skips_is_known_to_the_list() -> None:
    """A skip by hand would not be told by the doctor: these few are about a case or a model, not about a machine."""
    by_hand = {
        path.relative_to(ROOT / "tests").as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("pytest.skip" + "(", "mark.skip" + "if("))
    }
    assert by_hand == {
        "needs.py",
        "llamaindex/test_conversation.py",
        "llamaindex/test_replies.py",
        "cli/test_certify.py",
        "cli/test_demo.py",
        "package/test_release.py",
    }


def test_the_list_finds_the_tests_behind_fixtures_and_folders() -> None:
    found = {(skip.needs, skip.where) for skip in skips()}
    assert NEEDS.keys() <= {needs for needs, _ in found}
    assert ("langchain_core", "tests/langchain/") in found
    assert ("MLX", "tests/models/server/test_real_servers.py") in found
    assert ("CHROMIUM", "tests/evaluation/show/report/test_browser.py") in found
    assert ("starlette", "tests/cli/test_serve.py") in found
    assert ("POSIX", "tests/evaluation/run/test_journal.py::test_results_that_were_made_private_stay_private") in found
