"""What all tests share: no network but this machine's own, and fixtures of several folders."""

from __future__ import annotations

import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.helpers.serving import reader_folder, reader_server

__all__ = ["reader_folder", "reader_server"]

# torch's threads sleep while they wait for each other: on a busy machine, spinning ones take six times the CPU time and
# four times as long. Set before torch loads its thread library; the programs that tests start inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A job in the background of a script ignores Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples have no deadline: on a busy machine any of them may take long. pytest-timeout bounds each test.
settings.register_profile("busy machines", deadline=None)
settings.load_profile("busy machines")

SLOW = Path(__file__).with_name("slow.txt")

_PACKAGES = ("robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag")
_HERE = {None, "", "127.0.0.1", "::1", "localhost", "0.0.0.0", "::", socket.gethostname()}


def slow_tests() -> list[str]:
    """What `--quick` leaves out: how the names of tests begin (`tests/slow.txt`)."""
    lines = (line.partition("#")[0].strip() for line in SLOW.read_text().splitlines())
    return [line for line in lines if line]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what takes long: the tests named in slow.txt")
    parser.addoption("--shuffle", metavar="SEED", help="run in the order that SEED draws; 'any' draws a seed, too")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.shuffle == "any":
        # xdist's workers read the command line again; the environment they inherit.
        config.option.shuffle = os.environ.setdefault("SHUFFLE_SEED", str(random.randrange(10**6)))


@pytest.hookimpl(tryfirst=True)  # pytest then brings together what shares a costly fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.quick:
        slow = tuple(slow_tests())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid.startswith(slow)])
        items[:] = [item for item in items if not item.nodeid.startswith(slow)]
    if seed := config.option.shuffle:
        items.sort(key=lambda item: place(item.nodeid, seed))


def place(name: str, seed: str) -> tuple[float, float]:
    """Where a test stands in the order that a seed draws: files stay whole, and it matters not what else is run."""
    return random.Random(f"{seed} {name.partition('::')[0]}").random(), random.Random(f"{seed} {name}").random()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if seed := config.option.shuffle:
        terminalreporter.write_line(f"the order was that of --shuffle {seed}")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuse connections and look-ups that lead elsewhere, as a machine without network does, and fail the test.

    Gives the list of what was tried.

    Who connects a datagram socket to learn this machine's own address is refused but not blamed: nothing is sent.
    """
    blamed: list[str] = []

    def check(instance: socket.socket, address: Any) -> None:
        if not isinstance(address, tuple) or address[0] in _HERE or str(address[0]).startswith("127."):
            return
        if instance.type == socket.SOCK_STREAM:
            blamed.append(f"a connection to {address}")
        raise OSError(f"tests do not connect to {address}")

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            check(self, address)
            return original(self, address)

        return connect

    def look_up(host: Any, *more: Any, **named: Any) -> Any:
        shown = host.decode() if isinstance(host, bytes) else host
        if shown not in _HERE and not _is_address(str(shown)):
            blamed.append(f"a look-up of {host!r}")
            raise socket.gaierror(socket.EAI_NONAME, f"tests do not look up {host!r}")
        return original_look_up(host, *more, **named)

    original_look_up = socket.getaddrinfo
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guarded(name))
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield blamed
    assert not blamed, f"the test tried {', '.join(blamed)}"


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test after which logs or the interpreter are set otherwise: later tests would depend on the order."""

    def settings() -> dict[str, object]:
        levels = {name: logging.getLogger(name).level for name in (None, *_PACKAGES)}
        return {**levels, "handlers": [*map(type, logging.getLogger().handlers)], "depth": sys.getrecursionlimit()}

    before = settings()
    yield
    assert settings() == before


@pytest.fixture
def no_server_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment names a server, a key or a proxy."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def _is_address(host: str) -> bool:
    """Whether this is a number already, so that looking it up asks nobody."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
