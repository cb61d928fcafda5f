"""`robustrag doctor`: lists what is installed and what is missing, and checks the shipped files against the release."""

from __future__ import annotations

import argparse
import os
import platform
from importlib import metadata

from packaging.requirements import Requirement

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_FAILURE, working

PACKAGE = "robustrag-integrations"
# What the files of this version hash to; `tests/cli/test_doctor.py` holds it.
SHIPPED = {
    "bundled reader": "sha256:0bcad3adea6895ae26a87b7dcf114ca996234dd0dbd3f8b99b40a5bfb3f2b6ab",
    "keyword pipeline": "sha256:794ab29066852de86a44478c8067932bed136a560126d9939b26fd7e76c593c6",
}

DESCRIPTION = """\
Versions, devices, whether rows of a batch affect each other on this machine, and whether
the models that ship are those that were released. Attach it to bug reports; nothing of
the environment is in it.
"""

EPILOG = """\
exit codes: 0 done, 1 the models that ship are missing or not those that were released, 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--quick", action="store_true", help="leave the isolation probe out, which loads a model")


def run(args: argparse.Namespace) -> int:
    """Inspect everything, and print it."""
    with working("looking" if args.quick else "looking, and probing the bundled reader"):
        shipped = {name: "as released" if _hash(name) == hashed else "NOT AS RELEASED: reinstall"
                   for name, hashed in SHIPPED.items()}  # fmt: skip
        found = {
            "robustrag": f"{__version__}, Python {platform.python_version()}, {platform.platform()}",
            "devices": f"{os.cpu_count()} CPU threads, {_gpus()}",
            **shipped,
            "isolation": "not probed" if args.quick else isolation_here(),
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


def isolation_here() -> str:
    """Ask the bundled reader, and say what the isolation probe found on this machine."""
    from robustrag_integrations.models.providers import silence_transformers

    try:
        from robustrag_integrations import KeywordAggregation, LocalModel

        silence_transformers()
        model = LocalModel.bundled(max_context_tokens=256)
        facts = ["The capital of Velmora is Tarsk."] * 10  # as many as `robustrag demo` reads
        answer = KeywordAggregation(model, group_by="passage").answer("What is the capital of Velmora?", facts)
    except Exception as error:
        return f"not probed: {redacted(f'{type(error).__name__}: {error}')[:500]}"
    return "; ".join([*map(str, model.numerics.values()), f"answer {answer.text}, radius {answer.radius}"])


def _hash(name: str) -> str | None:
    """Return the hash of the files of a shipped model; None if they cannot be read."""
    from robustrag_integrations.reader import reader_path
    from robustrag_integrations.text.spacy_keywords import SHIPPED_FOLDER, hash_of_files

    try:
        return hash_of_files(reader_path() if name == "bundled reader" else SHIPPED_FOLDER)
    except Exception:
        return None
