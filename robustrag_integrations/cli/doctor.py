"""`robustrag doctor`: lists what is installed and what is missing, and checks the shipped files against the release."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_FAILURE, Progress, show, show_json

PACKAGE = "robustrag-integrations"
# What the files of this version hash to; `tests/cli/test_doctor.py` holds it.
SHIPPED = {
    "bundled reader": "sha256:0bcad3adea6895ae26a87b7dcf114ca996234dd0dbd3f8b99b40a5bfb3f2b6ab",
    "keyword pipeline": "sha256:794ab29066852de86a44478c8067932bed136a560126d9939b26fd7e76c593c6",
}
_NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTPS_PROXY", "HTTP_PROXY", "HF_HOME", "HF_HUB_OFFLINE", "CHROMIUM")
_NUMBERS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # no secrets, and they decide which kernels run
_FACTS = 10  # passages of the isolation probe: as many as `robustrag demo` reads

DESCRIPTION = """\
What is here: versions, extras, devices, what the isolation probe finds on this machine,
and whether the models that ship are those that were released. Put the output into a
report on a defect; its first line is a summary.

Of environment variables it says whether they are set, never what they hold.
"""

EPILOG = """\
how to read it:
  isolation      whether the rows of a batch move each other's numbers on this machine's
                 kernels, tried with the bundled reader (needs the extra local);
                 "10 as 12" means that 10 prompts are padded to 12 rows to keep them apart
  shipped        the hashes of the bundled reader and the keyword pipeline

exit codes: 0 done, 1 the models that ship are missing or not those that were released, 2 wrong usage
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--quick", action="store_true", help="leave the isolation probe out, which loads a model")
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Inspect everything, and print it."""
    Progress().step("looking" if args.quick else "looking, and probing the bundled reader")
    found = diagnosis(quick=args.quick)
    if args.json:
        show_json(found)
    else:
        show("\n".join(printable(line, 1000) for line in _lines(found)))
    return EXIT_ANSWERED if all(model["as_released"] for model in found["shipped"].values()) else EXIT_FAILURE


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield found["summary"]
    for title in ("system", "packages"):
        yield from _section(title, found[title])
    yield from _section("extras", {name: _lacks(lacks) for name, lacks in found["extras"].items()})
    for title in ("devices", "isolation"):
        yield from _section(title, found[title])
    yield from _section("shipped", {name: _released(model) for name, model in found["shipped"].items()})
    yield from _section("environment", found["environment"])


def _section(title: str, rows: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", title)
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        shown = ", ".join(value) or "none" if isinstance(value, list) else value
        yield f"  {name:{width}}  {shown}"


def _lacks(missing: list[str]) -> str:
    return f"lacks {', '.join(missing)}" if missing else "installed"


def _released(model: Mapping[str, Any]) -> str:
    return f"{model['fingerprint']} ({'as released' if model['as_released'] else 'NOT AS RELEASED: reinstall'})"


def diagnosis(*, quick: bool = False) -> dict[str, Any]:
    """Return all findings as data.

    Args:
        quick: True to leave the isolation probe out, which loads the bundled reader.

    Returns:
        What JSON holds. No value of an environment variable is in it but numbers of threads.
    """
    extras = extras_here()
    devices = devices_here()
    shipped = shipped_models()
    found: dict[str, Any] = {
        "schema": "robustrag/doctor/1",
        "system": system_here(),
        "packages": packages_here(),
        "extras": extras,
        "devices": devices,
        "isolation": {"skipped": "--quick"} if quick else isolation_here(),
        "shipped": shipped,
        "environment": environment_here(),
    }
    return {"summary": _summary(found), **found}


def _summary(found: dict[str, Any]) -> str:
    """Return the first line of a bug report."""
    system, packages = found["system"], found["packages"]
    named = [f"{name} {packages[name]}" for name in ("torch", "langchain-core", "llama-index-core") if name in packages]
    whole = [name for name, missing in found["extras"].items() if not missing]
    models = "as released" if all(m["as_released"] for m in found["shipped"].values()) else "NOT AS RELEASED"
    isolation = found["isolation"].get("in_short", "not probed")
    return "; ".join(
        [
            f"robustrag {__version__}, Python {system['python']}, {system['system']} {system['machine']}",
            ", ".join(named) or "no framework",
            f"extras {', '.join(whole) or 'none'}",
            f"{found['devices']['cpu_threads']} CPU threads, {len(found['devices']['cuda'])} GPUs",
            f"isolation {isolation}",
            f"shipped models {models}",
        ]
    )


def system_here() -> dict[str, str]:
    """Return the versions of this package, Python and the system."""
    return {
        "robustrag": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
    }


def packages_here() -> dict[str, str]:
    """Return the installed packages among all that this one or its extras name, with their versions."""
    named = {_name(text) for text in _requirements()} - {PACKAGE}
    return {name: version for name in sorted(named) if (version := _version(name)) is not None}


def extras_here() -> dict[str, list[str]]:
    """Return each extra with what it lacks: `package` or `package>=2 (1.0 is here)`; nothing for a complete one."""
    try:
        names = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return {}
    return {name: sorted(_lacking(name)) for name in names}


def _lacking(extra: str) -> Iterator[str]:
    from packaging.requirements import Requirement

    for text in _requirements():
        wanted = Requirement(text)
        if wanted.marker is None or not wanted.marker.evaluate({"extra": extra}):
            continue
        if _name(text) == PACKAGE:
            for other in wanted.extras:
                yield from _lacking(other)
            continue
        version = _version(wanted.name)
        if version is None:
            yield wanted.name
        elif not wanted.specifier.contains(version, prereleases=True):
            yield f"{wanted.name}{wanted.specifier} ({version} is here)"


def _requirements() -> list[str]:
    try:
        return metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return []


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def devices_here() -> dict[str, Any]:
    """Return the devices that could compute."""
    affinity = getattr(os, "sched_getaffinity", None)
    found: dict[str, Any] = {"cpu_threads": len(affinity(0)) if affinity else os.cpu_count() or 1, "cuda": []}
    try:
        import torch
    except ImportError:
        return {**found, "torch": "not installed"}
    found["torch_threads"] = torch.get_num_threads()
    found["cpu_kernels"] = f"{torch.backends.cpu.get_cpu_capability()}, MKL {torch.backends.mkl.is_available()}"
    try:
        for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
            about = torch.cuda.get_device_properties(number)
            found["cuda"].append(f"{about.name}, {about.total_memory >> 30} GiB, {about.major}.{about.minor}")
    except RuntimeError as error:  # a driver that does not fit
        found["cuda_error"] = redacted(str(error))[:300]
    found["mps"] = torch.backends.mps.is_available()
    return found


def isolation_here() -> dict[str, str]:
    """Run the isolation probe on the bundled reader: whether the rows of a batch affect each other on this machine,
    and how many rows of padding keep them apart."""
    from robustrag_integrations.models.providers import silence_transformers

    try:
        from robustrag_integrations import KeywordAggregation, LocalModel

        silence_transformers()
        model = LocalModel.bundled(max_context_tokens=256)
        facts = ["The capital of Velmora is Tarsk."] * _FACTS
        answer = KeywordAggregation(model, group_by="passage").answer("What is the capital of Velmora?", facts)
    except Exception as error:
        return {"in_short": "not probed", "why": redacted(f"{type(error).__name__}: {error}")[:500]}
    numerics = dict(model.numerics)
    exact = "not a bit" in numerics["isolation"]
    return {
        "in_short": "exact" if exact else "with float noise",
        **numerics,
        "answer": f"{answer.text}, radius {answer.radius} of {_FACTS} passages",
    }


def shipped_models() -> dict[str, dict[str, Any]]:
    """Return the shipped models with the hash of their files, and whether it is that of this version."""
    from robustrag_integrations.keywords.fingerprint import hash_of_files
    from robustrag_integrations.keywords.spacy_extractor import SHIPPED_FOLDER
    from robustrag_integrations.reader import reader_path

    ways: dict[str, Callable[[], str]] = {
        "bundled reader": lambda: hash_of_files(reader_path()),
        "keyword pipeline": lambda: hash_of_files(SHIPPED_FOLDER),
    }
    found: dict[str, dict[str, Any]] = {}
    for name, way in ways.items():
        try:
            fingerprint = way()
        except Exception as error:
            fingerprint = f"cannot be read: {error}"
        found[name] = {"fingerprint": fingerprint, "as_released": fingerprint == SHIPPED[name]}
    return found


def environment_here() -> dict[str, str]:
    """Return which variables are set; never their values, except for numbers of threads."""
    told = {name: "set" if os.environ.get(name) else "not set" for name in _NAMES}
    for name in _NUMBERS:
        value = os.environ.get(name, "")
        told[name] = value if value.isdecimal() and len(value) < 6 else "set" if value else "not set"
    return told
