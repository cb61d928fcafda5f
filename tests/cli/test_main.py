"""The command as a process: help, exit codes, pipes and terminals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from robustrag_integrations import __version__, models
from robustrag_integrations.cli import COMMANDS
from robustrag_integrations.cli import ask as ask_command
from tests.helpers.openai_server import LoopbackServer


def process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robustrag_integrations", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["aks", "q"], "there is no command 'aks'; did you mean ask?"),
        (["help"], "there is no command 'help' (demo, "),
        (["ask", "q", "--docs", ".", "--min_radius", "1"], "there is no --min_radius; did you mean --min-radius?"),
        (["ask", "q", "--docs", ".", "--alpha", "0.3"], "--alpha is a setting, not an option: --set alpha=0.3"),
        (["ask", "q", "--docs", ".", "--api-key", "x"], "there is no --api-key"),
        (["ask", "Who", "runs", "it?", "--docs", "."], "unexpected 'runs'; put the question in quotes"),
        (["ask", "--docs", ".", "Who runs it?"], "put it before --docs, which takes all that follows"),
        (["ask", "q", "--docs", ".", "--method", "keyword", "consensus"], "--method takes one value"),
        (["ask", "q", "--docs", ".", "--json", "true"], "unexpected 'true': --json takes no value"),
        (["ask", "q", "--docs", ".", "--model", "gpt-4o"], "no folder of that name here. Give bundled, openai:NAME"),
        (["ask", "q", "--docs", ".", "--embedding-url", "http://x/v1"], "goes with --embedding openai:NAME"),
        (["mcp", "--docs", ".", "--port", "1"], "there is no --port"),
        (["playground", "--embedding", "x"], "--embedding goes with --docs"),
        (["demo", "--fly"], "there is no --fly"),
    ],
)
def test_a_natural_mistake_is_named_with_the_fix(command, arguments: list[str], said: str) -> None:
    result = command(*arguments)
    assert (result.code, result.out) == (2, "")
    error, hint = result.err.splitlines()
    assert said in error
    command_line = f"robustrag {arguments[0]}" if arguments[0] in COMMANDS else "robustrag"
    assert hint.endswith(f"try: {command_line} --help")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_and_help_all_shows_every_option(command, name: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    short, everything = command(name, "--help").out, command(name, "--help-all").out
    assert "--help-all" in short
    assert set(re.findall(r"--[a-z-]+", short)) <= set(re.findall(r"--[a-z-]+", everything))
    if name == "ask":
        assert 20 <= len(short.splitlines()) <= 32
        assert "--per-source" in everything
        assert "--per-source" not in short


def test_the_version_says_what_is_installed(command) -> None:
    said = command("--version").out.splitlines()
    assert said[0].startswith(f"robustrag {__version__}, Python 3.")
    assert f"numpy {metadata.version('numpy')}" in said


def test_an_interrupt_ends_without_a_stack_trace(command, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(ask_command, "run", interrupted)
    result = command("ask", "Who?", "--docs", docs)
    assert (result.code, result.out, result.err) == (130, "", "robustrag: interrupted\n")


@pytest.mark.parametrize(
    ("missing", "extra", "model"),
    [("bm25s", "cli", "openai:m"), ("langchain_text_splitters", "cli", "openai:m"), ("torch", "local", "a folder")],
)
def test_a_missing_extra_says_what_to_install(command, docs, monkeypatch, missing: str, extra: str, model: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    providers = ("robustrag_integrations.models.server", "robustrag_integrations.models.local")
    for provider in providers:
        if provider in sys.modules:  # undone, too: importing it anew puts another module there
            monkeypatch.setattr(models, provider.rpartition(".")[2], sys.modules[provider])
    for module in [name for name in sys.modules if name.startswith(providers)]:
        monkeypatch.delitem(sys.modules, module)
    (docs / "config.json").write_text("{}")
    arguments = ("--model", docs) if model == "a folder" else ("--model", model, "--base-url", "http://127.0.0.1:9")
    result = command("ask", "Who runs the mill?", "--docs", docs, *arguments)
    assert (result.code, result.out) == (1, "")
    assert f"pip install 'robustrag-integrations[{extra}]" in result.err


def test_a_terminal_that_cannot_show_a_letter_gets_its_number(tmp_path: Path, server: LoopbackServer) -> None:
    (tmp_path / "a.txt").write_text("The mill is run by Änne Ek.", encoding="utf-8")
    arguments = ("ask", "Who runs the mill?", "--docs", tmp_path, "--model", "openai:m", "--base-url", server.url)
    ended = process(*arguments, "--method", "vanilla", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ended.returncode == 0
    assert "\\xc4nne Ek" in ended.stdout


@pytest.mark.parametrize("name", ["eval", "certify", "report"])
def test_without_the_extra_a_command_of_the_evaluation_says_what_to_install(name: str) -> None:
    code = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Gone(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'scipy': raise ModuleNotFoundError(name)\n"
        "import importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'scipy' else find(name, package)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from robustrag_integrations.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, name, "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("robustrag: error: evaluations need scipy: pip install 'robustrag-integrations[eval]")
    assert subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True).returncode == 0
