"""`robustrag probe`: tests whether a model is reproducible, alone and under load."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.options import add_model, named_model, some_text, whole_number
from robustrag_integrations.cli.output import EXIT_ANSWERED, EXIT_DIFFERS, progress_bar, show_json

if TYPE_CHECKING:
    from robustrag_integrations.models.determinism_probe import RepeatFindings

DESCRIPTION = """\
Does this model repeat itself? Equal prompts are asked again and again, alone and with
other prompts beside them, and the replies are compared. A radius is about every run only
if the model repeats itself; a server may not, even at temperature 0, as what else is in a
batch moves its numbers, and an attacker may send some of that.
"""

EPILOG = """\
No difference means that none was seen; the interval says how frequent they may still be. In Python,
model.probe = findings.summary() has every answer carry it (answer.determinism). It makes prompts x
repeats x (load + 2) calls: with the defaults 3 x 20 x 18 = 1,080.

exit codes: 0 no difference seen, 4 differences seen, 2 wrong usage, 1 failure
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_model(parser)
    about = "what is repeated (default: three of our own)"
    parser.add_argument("--prompt", nargs="+", type=some_text, metavar="TEXT", help=about)
    about = "how often each prompt is asked alone, and as often under load (default 20)"
    parser.add_argument("--repeats", type=whole_number(2, 100_000), default=20, metavar="N", help=about)
    about = "how many other prompts stand beside it under load (default 16)"
    parser.add_argument("--load", type=whole_number(1, 1000), default=16, metavar="N", help=about)
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Probe the model; see the module's help text."""
    from robustrag_integrations.models.determinism_probe import probe_determinism

    model = named_model(args.model, args.base_url, max_concurrency=args.load + 1).load()
    calls = 3 if args.prompt is None else len(args.prompt)
    with closing(progress_bar(calls * args.repeats * (args.load + 2), "call")) as bar:
        found = probe_determinism(
            model, args.prompt, repeats=args.repeats, load=args.load, on_progress=lambda *_: bar.update(args.load + 2)
        )
    if args.json:
        show_json(found.to_dict())
    else:
        print(_in_words(found))
    return EXIT_DIFFERS if found.differed else EXIT_ANSWERED


def _in_words(found: RepeatFindings) -> str:
    lines = [
        f"Model:   {printable(found.model, 200)}",
        f"Asked:   {found.prompts} prompts, {found.repeats} times each alone, and with {found.load} others beside them",
    ]
    for when, seen in (("Alone:  ", found.alone), ("Loaded: ", found.under_load)):
        lines.append(f"{when} {seen.replies} replies, {seen.differed} differed, {seen.failed} failed")
    lines += ["", _verdict(found)]
    for usual, other in found.examples[:3]:
        lines += ["", f"usual:   {printable(usual, 200)}", f"another: {printable(other, 200)}"]
    return "\n".join(lines)


def _verdict(found: RepeatFindings) -> str:
    if not found.differed:
        most = 1 - 0.05 ** (1 / max(found.compared - found.prompts, 1))  # each reference call counts once
        return (
            f"No difference in {found.compared} replies: with 95% confidence fewer than {most:.1%} of replies like\n"
            "these differ, under no more load than this. That is no proof."
        )
    if not found.alone.differed:
        return (
            "Alone it repeated itself, under load it did not: other prompts move its numbers, and an attacker's\n"
            "may, too. docs/guide/models.md has batch-invariant modes."
        )
    return (
        "The model does not repeat itself: it samples, or its server changes by itself. Ask for temperature 0;\n"
        "or read answer.determinism for what holds of a run, and expected certified accuracy (robustrag eval)\n"
        "for what holds of a data set."
    )
