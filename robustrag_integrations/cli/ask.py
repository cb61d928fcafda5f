"""`robustrag ask`: answers one question from your own documents."""

from __future__ import annotations

import argparse

from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import ask_report
from robustrag_integrations.cli.options import Answering, add_answering, some_text
from robustrag_integrations.cli.output import EXIT_ABSTAINED, EXIT_ANSWERED, UsageError, complain, show_json, working
from robustrag_integrations.defenses.registry import BASELINES, METHODS
from robustrag_integrations.grouping.passages import PASSAGE

DESCRIPTION = """\
Read what you trust together, and answer from it: nothing in other files changes that
answer. Where it is silent, ask the model about each other source alone, and answer with
what enough of them agree on. The radius says how many of these could have said anything
else without changing the answer.
"""

EPILOG = """\
examples:
  robustrag ask "Who runs the mill?" --docs notes/ letters.pdf
  robustrag ask "How many days of leave are there?" --trusted handbook/ --docs uploads/
  robustrag ask "Which towns lie on the Lenn?" --docs notes/ --task list
  robustrag ask "Who won?" --docs news/ --model openai:my-model --base-url http://localhost:8000/v1

exit codes: 0 answered, 3 abstained (no answer was agreed on), 2 wrong usage, 1 failure
"""

DETAILS = """\
One source, one vote: a file, or what a JSONL row ({"text": "...", "source": "..."}) names as its
source, however long it is. Folders are read to any depth.

Nothing is counted, added up or compared over sources, and no "list all" is complete: ask for
what one source can say. The radius is about stability, not truth.
"""

BASIC = frozenset({
    "docs", "trusted", "task", "choices", "model", "base_url", "embedding", "top_k", "min_radius", "set", "json",
})  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("question", type=some_text, metavar="QUESTION", help="the question, in quotes")
    add_answering(parser, {**METHODS, **BASELINES})
    about = "the options of a multiple-choice question"
    parser.add_argument("--choices", nargs="+", type=some_text, metavar="TEXT", help=about)
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Answer the question; see the module's help text."""
    from robustrag_integrations.corpus import Found
    from robustrag_integrations.defenses.voting.options import check_choices

    asked = Answering(args, args.choices)
    try:
        if args.choices:
            check_choices(args.choices)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    asked.read()
    found = Found(asked.library, args.question)
    none = "note: no passage shares a word with the question; --embedding finds by meaning, too"
    if found.trusted is None and not found.passages:
        complain(none)
    asked.load()
    defense = asked.built()
    try:
        count = count_of(len(found.passages), "passage")
        told = count if found.trusted is None else f"{count} that you trust"
        with working(f"asking about {told}", sources=True):
            answer = defense.answer(args.question, **found.of(defense), choices=args.choices)
    except ValueError as error:  # the question does not fit into the model's window
        raise RobustRAGError(str(error)) from error
    passages = found.passages
    if found.trusted is not None and not passages:
        complain(none)
    if args.json:
        skipped = [{"path": s.path, "reason": s.reason} for s in asked.skipped]
        show_json(ask_report(asked.model.description, answer, passages, skipped))
    else:
        print(answer.explain())
    if asked.rules.by != PASSAGE and len(answer.sources) == 1 < len(list(found)) and asked.method in METHODS:
        complain(
            "note: all passages found share one vote; --group-by passage gives a vote to each, where they have "
            "different authors, and origin to each file or page"
        )
    return EXIT_ABSTAINED if answer.abstained else EXIT_ANSWERED
