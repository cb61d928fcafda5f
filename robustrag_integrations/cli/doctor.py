"""`robustrag doctor`: lists what is installed and what is missing, and checks the shipped files against the release."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_FAILURE, show_json, working

PACKAGE = "robustrag-integrations"
# What the files of this version hash to; `tests/cli/test_doctor.py` holds it.
SHIPPED = {
    "bundled reader": "sha256:0bcad3adea6895ae26a87b7dcf114ca996234dd0dbd3f8b99b40a5bfb3f2b6ab",
    "keyword pipeline": "sha256:794ab29066852de86a44478c8067932bed136a560126d9939b26fd7e76c593c6",
}
_FACTS = 10  # passages of the isolation probe: as many as `robustrag demo` reads

DESCRIPTION = """\
What is here: versions, extras, devices, what the isolation probe finds on this machine,
and whether the models that ship are those that were released. Put the output into a
report on a defect; its first line is a summary. Nothing of the environment is in it.
"""

EPILOG = """\
exit codes: 0 done, 1 the models that ship are missing or not those that were released, 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--quick", action="store_true", help="leave the isolation probe out, which loads a model")
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Inspect everything, and print it."""
    with working("looking" if args.quick else "looking, and probing the bundled reader"):
        found = diagnosis(quick=args.quick)
    if args.json:
        show_json(found)
    else:
        lines = [found["summary"]]
        for title in ("packages", "extras", "isolation", "shipped"):
            lines += ["", title, *(f"  {name}: {value}" for name, value in found[title].items())]
        print("\n".join(printable(line, 1000) for line in lines))
    return EXIT_ANSWERED if set(found["shipped"].values()) == {"as released"} else EXIT_FAILURE


def diagnosis(*, quick: bool = False) -> dict[str, Any]:
    """Return all findings in JSON's types, after a line that sums them up; `quick` loads no model."""
    wanted = list(map(Requirement, metadata.requires(PACKAGE) or []))
    versions = ((name, _version(name)) for name in sorted({w.name for w in wanted} - {PACKAGE}))
    packages = {name: version for name, version in versions if version}
    names = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    lacking = {name: ", ".join(sorted(_lacking(name, wanted))) for name in names}
    isolation = {"in_short": "not probed", "why": "--quick"} if quick else isolation_here()
    changed = [name for name, released in SHIPPED.items() if _hash(name) != released]
    named = [f"{name} {packages[name]}" for name in ("torch", "langchain-core", "llama-index-core") if name in packages]
    summary = [
        f"robustrag {__version__}, Python {platform.python_version()}, {platform.platform()}",
        ", ".join(named) or "no framework",
        f"extras {', '.join(name for name, missing in lacking.items() if not missing) or 'none'}",
        f"{os.cpu_count()} CPU threads, {_gpus()}",
        f"isolation {isolation['in_short']}",
        f"shipped models {'NOT AS RELEASED' if changed else 'as released'}",
    ]
    return {
        "summary": "; ".join(summary),
        "schema": "robustrag/doctor/1",
        "packages": packages,
        "extras": {name: f"lacks {missing}" if missing else "installed" for name, missing in lacking.items()},
        "isolation": isolation,
        "shipped": {name: "NOT AS RELEASED: reinstall" if name in changed else "as released" for name in SHIPPED},
    }


def _gpus() -> str:
    try:
        import torch

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return ", ".join(map(torch.cuda.get_device_name, range(count))) or "no GPU"
    except (ImportError, RuntimeError):  # no torch, or a driver that does not fit
        return "no GPU that torch finds"


def _lacking(extra: str, requirements: Sequence[Requirement]) -> Iterator[str]:
    """Yield what an extra lacks: `package` or `package>=2 (1.0 is here)`."""
    for wanted in requirements:
        if wanted.marker is None or not wanted.marker.evaluate({"extra": extra}):
            continue
        if wanted.name == PACKAGE:
            for other in wanted.extras:
                yield from _lacking(other, requirements)
        elif (version := _version(wanted.name)) is None:
            yield wanted.name
        elif not wanted.specifier.contains(version, prereleases=True):
            yield f"{wanted.name}{wanted.specifier} ({version} is here)"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def isolation_here() -> dict[str, str]:
    """Run the isolation probe on the bundled reader: whether the rows of a batch affect each other on this machine."""
    from robustrag_integrations.models.providers import silence_transformers

    try:
        from robustrag_integrations import KeywordAggregation, LocalModel

        silence_transformers()
        model = LocalModel.bundled(max_context_tokens=256)
        facts = ["The capital of Velmora is Tarsk."] * _FACTS
        answer = KeywordAggregation(model, group_by="passage").answer("What is the capital of Velmora?", facts)
    except Exception as error:
        return {"in_short": "not probed", "why": redacted(f"{type(error).__name__}: {error}")[:500]}
    exact = "not a bit" in model.numerics["isolation"]
    told = f"{answer.text}, radius {answer.radius} of {_FACTS} passages"
    return {"in_short": "exact" if exact else "with float noise", **model.numerics, "answer": told}


def _hash(name: str) -> str | None:
    """Return the hash of the files of a shipped model; None if they cannot be read."""
    from robustrag_integrations.reader import reader_path
    from robustrag_integrations.text.spacy_keywords import SHIPPED_FOLDER, hash_of_files

    try:
        return hash_of_files(reader_path() if name == "bundled reader" else SHIPPED_FOLDER)
    except Exception:
        return None
