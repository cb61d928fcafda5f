"""`robustrag doctor`: lists what is installed and what is missing, and checks the shipped files against the release."""

from __future__ import annotations

import argparse
import os
import platform
from importlib import metadata

from packaging.requirements import Requirement

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_FAILURE, working

PACKAGE = "robustrag-integrations"
# What the files of this version hash to; `tests/cli/test_doctor.py` holds it.
SHIPPED = {
    "bundled reader": "sha256:0bcad3adea6895ae26a87b7dcf114ca996234dd0dbd3f8b99b40a5bfb3f2b6ab",
    "keyword pipeline": "sha256:794ab29066852de86a44478c8067932bed136a560126d9939b26fd7e76c593c6",
}

DESCRIPTION = """\
Versions, devices, and whether the models that ship are those that were released. Attach it
to bug reports; nothing of the environment is in it.
"""

EPILOG = """\
exit codes: 0 done, 1 the models that ship are missing or not those that were released, 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add no options: it takes none."""


def run(args: argparse.Namespace) -> int:
    """Inspect everything, and print it."""
    with working("looking"):
        shipped = {name: "as released" if _hash(name) == hashed else "NOT AS RELEASED: reinstall"
                   for name, hashed in SHIPPED.items()}  # fmt: skip
        found = {
            "robustrag": f"{__version__}, Python {platform.python_version()}, {platform.platform()}",
            "devices": f"{os.cpu_count()} CPU threads, {_gpus()}",
            **shipped,
            **packages(),
        }
    print("\n".join(printable(f"{name}: {value}", 1000) for name, value in found.items()))
    return EXIT_ANSWERED if set(shipped.values()) == {"as released"} else EXIT_FAILURE


def packages() -> dict[str, str]:
    """Return the version of each package that an extra may need, or what is missing or too old."""
    found: dict[str, str] = {}
    for wanted in sorted(map(Requirement, metadata.requires(PACKAGE) or []), key=lambda wanted: wanted.name):
        if wanted.name == PACKAGE or wanted.name in found:
            continue
        try:
            version = metadata.version(wanted.name)
            fits = wanted.specifier.contains(version, prereleases=True)
            found[wanted.name] = version if fits else f"{version}, and {wanted.specifier} is needed"
        except metadata.PackageNotFoundError:
            found[wanted.name] = "not installed"
    return found


def _gpus() -> str:
    try:
        import torch

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return ", ".join(map(torch.cuda.get_device_name, range(count))) or "no GPU"
    except (ImportError, RuntimeError):  # no torch, or a driver that does not fit
        return "no GPU that torch finds"


def _hash(name: str) -> str | None:
    """Return the hash of the files of a shipped model; None if they cannot be read."""
    from robustrag_integrations.reader import reader_path
    from robustrag_integrations.text.spacy_keywords import SHIPPED_FOLDER, hash_of_files

    try:
        return hash_of_files(reader_path() if name == "bundled reader" else SHIPPED_FOLDER)
    except Exception:
        return None
