"""`robustrag doctor`: what is here, what is missing, and whether what ships is what was released."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from robustrag_integrations.cli.exits import EXIT_ANSWERED, EXIT_FAILURE
from robustrag_integrations.cli.output import Progress, show, show_json
from robustrag_integrations.display import printable

DESCRIPTION = """\
What is here: versions, extras, devices, what the isolation probe finds on this machine,
whether the models that ship are those that were released, and which tests would be
skipped. Put the output into a report on a defect; its first line is a summary.

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
    """Look at everything and print it."""
    from robustrag_integrations.cli.diagnosis import diagnosis

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
    yield from ("", "tests that would be skipped here")
    tests = found["tests"]
    if isinstance(tests, str):
        yield f"  {tests}"
        return
    for reason in tests or [{"why": "none", "tests": []}]:
        yield f"  {reason['why']}{': ' * bool(reason['tests'])}{', '.join(reason['tests'])}"


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
