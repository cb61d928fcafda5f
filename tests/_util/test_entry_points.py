"""What other packages add by entry points: a distribution is written to a folder, as pip would install it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations._util.entry_points import PluginWarning, Table
from robustrag_integrations.defenses.registry import METHODS

MODULE = """
from robustrag_integrations.defenses.registry import Method

TWICE = Method("{name}", "all groups word for word", ("short_answer",), "text", "tests.defenses.toy.defense:Unanimity")

LOST = Method("lost", "", ("short_answer",), "text", "toy_plugin:Gone")
ODD = Method("odd", "", ("short_answer",), "text", "toy_plugin:flattery")

def flattery(scene):
    return f"You are kind. {{scene.question}} {{scene.target}}!"
"""
ENTRIES = {
    "methods": "twice = toy_plugin:TWICE",
}


def install(
    folder: Path, entries: dict[str, str], module: str = MODULE, name: str = "twice", package: str = "toy"
) -> None:
    """Write a distribution into a folder of `sys.path`."""
    (folder / f"{package}_plugin.py").write_text(module.format(name=name) if "{name}" in module else module)
    info = folder / f"{package}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    lines = [f"[robustrag.{group}]\n{entry}\n" for group, entry in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the folder's packages installed."""
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(root)!r}]; {arguments[0]}"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments[1:]], capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path`; the table looks at installed packages again, and forgets them after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_plugin", raising=False)
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))
    monkeypatch.setattr(METHODS, "_packages", {})
    monkeypatch.setattr(METHODS, "_looked", False)
    yield tmp_path
    sys.modules.pop("toy_plugin", None)


CLI = "from robustrag_integrations.cli import main; sys.exit(main())"


def test_a_method_of_another_package_runs_by_name(tmp_path: Path) -> None:
    install(tmp_path, ENTRIES)
    done = run(tmp_path, CLI, "eval", "--limit", "1", "--defense", "vanilla", "twice", "--no-cache", "--json")
    assert done.returncode == 0, done.stderr
    assert "twice" in done.stdout
    assert "twice" in run(tmp_path, CLI, "ask", "--help").stdout


def test_nothing_of_other_packages_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    install(tmp_path, ENTRIES)
    done = run(
        tmp_path,
        "from robustrag_integrations.defenses.registry import METHODS\n"
        "METHODS['keyword']\n"
        "assert 'toy_plugin' not in sys.modules\n"
        "assert METHODS.get('twice').name == 'twice'\n"
        "assert METHODS.package_of('twice') == 'toy 1.2' and METHODS.package_of('keyword') is None\n",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("entries", "module", "name", "said"),
    [
        (ENTRIES, "raise OSError('no disk')", "", "'twice' to robustrag.methods, which is left out: OSError: no disk"),
        (ENTRIES, "raise SystemExit(3)", "", "SystemExit: 3"),
        (
            {"methods": "keyword = toy_plugin:TWICE"},
            MODULE,
            "keyword",
            "the name is taken by what ships with robustrag",
        ),
        ({"methods": "vanilla = toy_plugin:TWICE"}, MODULE, "vanilla", "has the name of a baseline"),
        ({"methods": "thrice = toy_plugin:TWICE"}, MODULE, "twice", "give the entry point the same name"),
        ({"methods": "twice = toy_plugin:flattery"}, MODULE, "twice", "must be a Method"),
        ({"methods": "twice = toy_plugin:GONE"}, MODULE, "twice", "GONE"),
        ({"methods": "lost = toy_plugin:LOST"}, MODULE, "twice", "has no attribute 'Gone'"),
        ({"methods": "odd = toy_plugin:ODD"}, MODULE, "twice", "toy_plugin:flattery is no Defense"),
        ({"methods": "a:b = toy_plugin:TWICE"}, MODULE, "twice", "the name must be up to 64 letters"),
    ],
)
def test_a_broken_package_costs_itself_alone_and_is_named(
    installed: Path, entries: dict[str, str], module: str, name: str, said: str
) -> None:
    install(installed, entries, module, name)
    with pytest.warns(PluginWarning) as caught:
        assert list(METHODS) == ["keyword", "decoding", "voting", "consensus"]
    assert METHODS["keyword"].class_name == "KeywordAggregation"
    [message] = [str(warning.message) for warning in caught]
    assert message.startswith("the package toy 1.2 adds ")
    assert said in message


def test_of_two_packages_with_one_name_the_first_by_name_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("b_second", "a_first"):
        install(tmp_path, {"things": f"thing = {package}_plugin:THING"}, f"THING = '{package}'", package=package)
    monkeypatch.syspath_prepend(str(tmp_path))
    table: Table[Any] = Table("robustrag.things", {"own": 1}, lambda name, found: found)
    with pytest.warns(PluginWarning, match="the name is taken by a_first 1.2|the name is taken by a-first 1.2"):
        assert list(table) == ["own", "thing"]
    assert table["thing"] == "a_first"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(table) == 2  # said once
