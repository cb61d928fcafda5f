"""Command-line arguments of the benchmarks, checked before anything is measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from robustrag_integrations.cli.options import whole_number

count = whole_number(1, 1_000_000)  # more of anything would not end


def make_folder(parser: argparse.ArgumentParser, option: str, folder: Path) -> None:
    """Create the folder for the figures; a usage error if that fails, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / ".writable"
        trial.touch()
        trial.unlink()
    except OSError as error:
        parser.error(f"{option}: nothing can be written to the folder {folder} ({error.strerror}); name another one")
