"""A real model server on loopback, for the time of a test: `transformers serve`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START = 240  # seconds that a busy machine may take to load everything


@pytest.fixture(scope="session")
def reader_folder() -> Path:
    """The bundled reader; `ROBUSTRAG_TEST_READER` names another folder with a model trained on the same prompts."""
    pytest.importorskip("torch", reason="the extra local is not installed")
    if named := os.environ.get("ROBUSTRAG_TEST_READER"):
        return Path(named)
    from robustrag_integrations.reader import reader_path

    return reader_path()


@pytest.fixture(scope="session")
def reader_server(reader_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server with the bundled reader, for all tests of a session."""
    for module in ("transformers", "fastapi", "uvicorn"):
        pytest.importorskip(module, reason="needs transformers[serving]")
    with transformers_server(reader_folder, tmp_path_factory.mktemp("serve")) as address:
        yield address


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def transformers_server(model: Path, scratch: Path) -> Iterator[str]:
    """The address (ending in /v1) of a server for the model in this folder; its log is kept in `scratch`."""
    beside = Path(sys.executable).with_name("transformers")
    command = str(beside) if beside.exists() else shutil.which("transformers")
    assert command, "transformers is installed without its command"
    with _server(command, ["serve", str(model), "--device", "cpu", "--dtype", "float32"], scratch) as address:
        yield address


@contextmanager
def _server(command: str, options: Sequence[str], scratch: Path, *, health: str = "/health") -> Iterator[str]:
    """The address of a server while it runs; `health` is what it answers once it is up."""
    port = free_port()
    log = scratch / "serve.log"
    home = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(scratch / "home"), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [command, *options, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **home},
        )
    try:
        _await(process, f"http://127.0.0.1:{port}{health}", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _await(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except (urllib.error.URLError, OSError):  # noqa: PERF203 - not up yet
            time.sleep(0.5)
    pytest.fail(f"the server is not there (exit code {process.poll()}):\n{log.read_text()[-2000:]}")
