"""A command line whose model is a server on loopback, and a small corpus to ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from robustrag_integrations.cli import main
from tests.helpers.openai_server import LoopbackServer, obedient_reader


@pytest.fixture(autouse=True)
def _no_environment(no_server_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of the command line finds a server in the environment, or the width of a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@dataclass
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(obedient_reader) as running:
        yield running


@pytest.fixture
def ask(command: Callable[..., Result], server: LoopbackServer) -> Callable[..., Result]:
    def run(*arguments: object) -> Result:
        return command("ask", *arguments, "--model", "openai:m", "--base-url", server.url)

    return run


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Five files that tell the truth about the mill, and one about something else."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in range(5):
        (folder / f"note{n}.txt").write_text(f"The mill is run by Anna Lind. This is note {n}.")
    (folder / "boat.txt").write_text("Nobody runs the boat.")
    return folder
