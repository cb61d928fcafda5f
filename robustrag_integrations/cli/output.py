"""Output: results to standard output, everything else to standard error; and exit codes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.models.base import listening

EXIT_ANSWERED = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_ABSTAINED = 3
EXIT_INTERRUPTED = 130


class UsageError(Exception):
    """A command line that cannot be carried out; the message says what to type instead."""


def terminal_width() -> int | None:
    """Return the width of standard output in characters; None for a file of unknown width."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def show_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON in plain ASCII, so that no control character of a document reaches the terminal."""
    print(json.dumps(data, indent=2, ensure_ascii=True))


def complain(*messages: str) -> None:
    """Print messages to standard error, one line each."""
    for message in messages:
        print(f"robustrag: {printable(redacted(message), 2000)}", file=sys.stderr)


@contextmanager
def working(message: str, *, sources: bool = False) -> Iterator[None]:
    """Show on a terminal what takes long, for how long it has, and how many `sources` a model was asked about."""
    if not sys.stderr.isatty():
        yield
        return
    began, done = time.monotonic(), threading.Event()
    asked = ""

    def count(read: int, of: int) -> None:
        nonlocal asked
        asked = f": {read} of {of} sources asked"

    def show(end: str = "") -> None:
        said = f"{printable(message, 160)}{asked} ({time.monotonic() - began:.0f} s)"
        print(f"\r{said}", end=end, file=sys.stderr, flush=True)

    def tick() -> None:
        show()
        while not done.wait(1):
            show()

    ticking = threading.Thread(target=tick, daemon=True)
    ticking.start()
    try:
        with listening(count) if sources else nullcontext():
            yield
    finally:
        done.set()
        ticking.join()
        show("\n")
