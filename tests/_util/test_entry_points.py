"""What other packages add by entry points: a distribution is written to a folder, as pip would install it."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations._util.entry_points import PluginWarning, Table, names_added
from robustrag_integrations.attacks import ATTACKS
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.data.datasets import DATASETS, DatasetError, load_dataset
from robustrag_integrations.metrics import METRICS

MODULE = """
from robustrag_integrations.defenses.registry import Method
from tests.defenses.toy import UnanimityOptions

TWICE = Method("{name}", "all groups word for word", ("short_answer",), "text", "tests.defenses.toy.defense:Unanimity",
               UnanimityOptions)

LOST = Method("lost", "", ("short_answer",), "text", "toy_plugin:Gone", dict)
ODD = Method("odd", "", ("short_answer",), "text", "toy_plugin:flattery", dict)

def flattery(scene):
    return f"You are kind. {{scene.question}} {{scene.target}}!"

def riddles():
    return [{{"question": "Who runs the mill?", "answer": "Anna Lind", "incorrect": "Karl Gross",
             "passages": ["Anna Lind runs the mill."] * 3}}]

def overlap(response, references):
    return float(references[0].lower() in response.lower())
"""
ENTRIES = {
    "methods": "twice = toy_plugin:TWICE",
    "attacks": "flattery = toy_plugin:flattery",
    "datasets": "riddles = toy_plugin:riddles",
    "metrics": "overlap = toy_plugin:overlap",
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
    """A folder on `sys.path`; all tables look at installed packages again, and forget them after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_plugin", raising=False)
    for table in (METHODS, ATTACKS, METRICS, DATASETS):
        monkeypatch.setattr(table, "_entries", dict(table._entries))
        monkeypatch.setattr(table, "_packages", {})
        monkeypatch.setattr(table, "_looked", False)
    yield tmp_path
    sys.modules.pop("toy_plugin", None)


CLI = "from robustrag_integrations.cli import main; sys.exit(main())"


def test_a_method_an_attack_a_data_set_and_a_metric_of_another_package_run_by_name(tmp_path: Path) -> None:
    install(tmp_path, ENTRIES)
    done = run(
        tmp_path,
        CLI,
        *("eval", "--data", "riddles", "--defense", "vanilla", "twice", "--attack", "flattery", "--metric", "overlap"),
        *("--model", "bundled", "--no-cache", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert all(said in done.stdout for said in ("twice", "flattery", "riddles", "overlap"))
    shown = run(tmp_path, CLI, "eval", "--help")
    assert "attacks: flattery" in shown.stdout
    assert "data: riddles" in shown.stdout
    assert "metrics: overlap" in shown.stdout
    assert "twice" in run(tmp_path, CLI, "ask", "--help").stdout


def test_nothing_of_other_packages_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    install(tmp_path, ENTRIES)
    done = run(
        tmp_path,
        "import robustrag_integrations.evaluation.data.datasets, robustrag_integrations.attacks\n"
        "from robustrag_integrations.defenses.registry import METHODS\n"
        "from robustrag_integrations.metrics import METRICS\n"
        "from robustrag_integrations.attacks import ATTACKS\n"
        "METHODS['keyword'], METRICS['exact'], ATTACKS['pia']\n"
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


@pytest.mark.parametrize(
    ("table", "entry", "said"),
    [
        (ATTACKS, "pia = toy_plugin:flattery", "the name is taken"),
        (ATTACKS, "calm = toy_plugin:TWICE", "must be a function that takes a Scene"),
        (METRICS, "exact = toy_plugin:overlap", "the name is taken"),
        (METRICS, "own = toy_plugin:TWICE", "must be a function of (response, references)"),
        (DATASETS, "demo = toy_plugin:riddles", "the name is taken"),
        (DATASETS, "own = toy_plugin:TWICE", "must be a function that returns rows"),
    ],
)
def test_other_tables_refuse_alike(installed: Path, table: Table[Any], entry: str, said: str) -> None:
    known = dict(table._entries)
    install(installed, {table._group.partition(".")[2]: entry})
    with pytest.warns(PluginWarning, match=re.escape(said)):
        assert dict(table) == known


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
    assert names_added("robustrag.things") == ("thing",)


def test_a_data_set_that_fails_is_named_with_its_package(installed: Path) -> None:
    broken = "def riddles():\n    yield {'question': 'a', 'answer': 'b', 'passages': []}\n    raise OSError('no net')\n"
    install(installed, {"datasets": "riddles = toy_plugin:riddles"}, broken)
    with pytest.raises(DatasetError, match=r"riddles: the package toy 1\.2 cannot read it: .*no net"):
        load_dataset("riddles")
    assert len(load_dataset("riddles", limit=1).questions) == 1


def test_a_file_comes_before_a_data_set_of_the_same_name(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(installed, ENTRIES)
    monkeypatch.chdir(installed)
    assert load_dataset("riddles").questions[0].question == "Who runs the mill?"
    (installed / "riddles").write_text('{"question": "From the file?", "answer": "yes", "passages": []}\n')
    assert load_dataset("riddles").questions[0].question == "From the file?"
