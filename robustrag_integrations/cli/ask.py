"""`robustrag ask`: answers one question from your own documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer, ask_report
from robustrag_integrations.cli.arguments import some_text
from robustrag_integrations.cli.defending import (
    Documents,
    add_answering,
    built_defense,
    check_defense,
    fill_in,
)
from robustrag_integrations.cli.output import (
    EXIT_ABSTAINED,
    EXIT_ANSWERED,
    Progress,
    UsageError,
    complain,
    show,
    show_json,
)
from robustrag_integrations.defenses.registry import BASELINES, METHODS, entry_of
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE, Passage
from robustrag_integrations.prompts import Task

DESCRIPTION = """\
Read documents, retrieve the passages that fit a question, ask the model about each
source alone, and answer with what enough of them agree on. The radius says how many
sources could have said anything else without changing the answer.

Nothing is counted, added up or compared over sources, and no "list all" is complete:
ask for what one source can say. The radius is about stability, not truth.
"""

EPILOG = """\
One source, one vote: a file, or what a JSONL row names as its source, however long it is.
.txt .text .md .markdown .pdf and .jsonl ({"text": "...", "source": "..."}) are read, folders to
any depth. A file of a folder that cannot be read is skipped with a note.

examples:
  robustrag ask "Who runs the mill?" --docs notes/ letters.pdf
  robustrag ask "Capital of Ruritania?" --docs news.jsonl --choices Strelsau Zenda
  robustrag ask "Who runs the mill?" --docs notes/ --defense decoding --json
  robustrag ask "Which towns lie on the Lenn?" --docs notes/ --task list --min-support 2
  robustrag ask "Who won?" --docs news/ --model openai:my-model --base-url http://localhost:8000/v1
  robustrag ask "Who won?" --docs news/ --defense decoding --model openai-completions:my-model \\
    --base-url http://localhost:8000/v1

exit codes: 0 answered, 3 abstained (no answer was agreed on), 2 wrong usage, 1 failure
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("question", type=some_text, metavar="QUESTION", help="the question, in quotes")
    add_answering(parser, {**METHODS, **BASELINES})
    parser.add_argument(
        "--choices", nargs="+", type=some_text, metavar="TEXT", help="the options of a multiple-choice question"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Answer the question; see the module's help text."""
    if args.choices and args.task:
        raise UsageError(f"--task {args.task} has no options to choose from; leave out --choices")
    fill_in(args)
    _check_choices(args)
    check_defense(args)
    progress = Progress()
    documents = Documents(args, progress)
    passages = documents.library.search(args.question)
    progress.step(f"asking about {count_of(len(passages), 'passage')}")
    task: Task = "multiple_choice" if args.choices else args.task or "short_answer"
    defense = built_defense(args, args.defense, documents.model, task)
    try:
        answer: RobustAnswer = defense.answer(args.question, passages, choices=args.choices)
    except ValueError as error:  # the question does not fit into the model's window
        raise RobustRAGError(str(error)) from error
    if args.json:
        skipped = [{"path": s.path, "reason": s.reason} for s in documents.skipped]
        show_json(ask_report(documents.model.description, answer, passages, skipped))
    else:
        show(answer.explain())
    _advise(args, answer, passages)
    return EXIT_ABSTAINED if answer.abstained else EXIT_ANSWERED


def _check_choices(args: argparse.Namespace) -> None:
    from robustrag_integrations.defenses.voting.options import check_choices

    method = entry_of(args.defense)
    if method.tasks == ("multiple_choice",) and not args.choices:
        raise UsageError(f"--defense {method.name} needs the options to vote on: --choices A B C")
    if args.choices and not method.takes_choices:
        fitting = [m.name for m in (*METHODS.values(), *BASELINES.values()) if m.takes_choices]
        raise UsageError(f"--choices goes with --defense {' or '.join(fitting)}, not {method.name}")
    try:
        if args.choices:
            check_choices(args.choices)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def _advise(args: argparse.Namespace, answer: RobustAnswer, passages: Sequence[Passage]) -> None:
    """Explain why there is no answer or no radius, where the documents are the reason."""
    if not passages:
        complain("note: no passage shares a word with the question")
    elif args.group_by != PASSAGE and len(answer.groups) == 1 < len(passages) and answer.defense not in BASELINES:
        complain(
            f"note: all passages found share one vote, by {printable(args.group_by or ORIGIN, 60)!r}; --group-by "
            "passage gives a vote to each, where they have different authors, and origin to each file or page"
        )
