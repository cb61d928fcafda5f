"""Where figures are written, looked at before anything is measured. The package is not imported here."""

from __future__ import annotations

import argparse
from pathlib import Path


def make_folder(parser: argparse.ArgumentParser, option: str, folder: Path) -> None:
    """Make the folder that the figures go to; a usage error where that cannot be, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / ".writable"
        trial.touch()
        trial.unlink()
    except OSError as error:
        parser.error(f"{option}: nothing can be written to the folder {folder} ({error.strerror}); name another one")
