"""`robustrag ask`: answers one question from your own documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.ask_report import ask_report
from robustrag_integrations.answers.usage import cost_in_words, prices_of
from robustrag_integrations.cli.arguments import (
    add_model,
    add_prices,
    existing,
    some_text,
)
from robustrag_integrations.cli.defending import (
    add_settings,
    add_task,
    add_thresholds,
    built_defense,
    check_probabilities,
    check_rules,
    check_thresholds,
    default_defense,
    rules_of,
)
from robustrag_integrations.cli.documents import add_documents, add_retrieval, per_source, read_index
from robustrag_integrations.cli.models import load_model, note_probe
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
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE, SITE, Passage
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.prompts import Task

DESCRIPTION = """\
Read documents, retrieve the passages that fit a question, ask the model about each
source alone, and answer with what enough of them agree on. The radius says how many
sources could have said anything else without changing the answer.

Nothing is counted, added up or compared over sources, and no "list all" is complete:
ask for what one source can say. The radius is about stability, not truth.
"""

EPILOG = """\
who has a vote:
  One source, one vote. A source is a file, or what a JSONL row names as its "source",
  "url", "file_path" or the like; a long file is cut into many passages, but still has
  one vote, so that writing more gains nothing. The --top-k best sources are asked, each
  with its --per-source best passages. --group-by site gives each web site one vote,
  --group-by author each value of the rows' "author", --group-by passage every passage:
  use it when the passages of one file come from different authors.

files that are read:
  .txt .text .md .markdown .pdf, and .jsonl with one object per line:
  {"text": "...", "source": "who says so", "title": "...", "id": "..."} (text is enough).
  Folders are searched to any depth, without hidden files and links. A file in a folder,
  or a row of a file, that cannot be read is skipped with a note; a file you name must be
  readable. PDFs are read in another process, within limits of time and memory.

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
    add_documents(parser)
    parser.add_argument(
        "--defense",
        choices=(*METHODS, *BASELINES),
        help="default keyword, with --choices voting. "
        + "; ".join(f"{m.name}: {m.summary}" for m in (*METHODS.values(), *BASELINES.values())),
    )
    add_task(parser)
    add_settings(parser)
    add_model(parser)
    add_retrieval(parser)
    add_thresholds(parser)
    parser.add_argument(
        "--choices", nargs="+", type=some_text, metavar="TEXT", help="the options of a multiple-choice question"
    )
    parser.add_argument(
        "--accept-sampling",
        action="store_true",
        help="you know that the model may answer otherwise another time: do not warn of it; what holds of this run is "
        "still said",
    )
    parser.add_argument(
        "--probe", type=existing, metavar="FILE", help="what robustrag probe --output found about this model; reported"
    )
    add_prices(parser)
    parser.add_argument("--json", action="store_true", help="print data instead of text")


def run(args: argparse.Namespace) -> int:
    """Answer the question; see the module's help text."""
    name = _defense_name(args)
    check_thresholds(args, name)
    check_rules(args, name)
    if args.choices:
        _check_choices(args.choices)
    progress = Progress()
    progress.step(f"reading {', '.join(args.docs)}")
    passages, skipped = _retrieve(args, progress)
    progress.step(f"loading the model {args.model}")
    model = load_model(args.model, args.base_url)
    note_probe(model, args.probe)
    progress.step(f"asking about {count_of(len(passages), 'passage')}")
    answer = _answer(args, name, model, passages)
    prices = None if args.prices is None else prices_of(args.prices)
    if args.json:
        show_json(
            {
                **ask_report(model.description, answer, passages, skipped),
                **({} if prices is None else {"cost": prices.of(answer.spending.total)}),
            }
        )
    else:
        show(answer.explain())
        if prices is not None:
            show(f"Cost: {cost_in_words(answer.spending, prices)}")
    _advise(args, answer, passages)
    return EXIT_ABSTAINED if answer.abstained else EXIT_ANSWERED


def _defense_name(args: argparse.Namespace) -> str:
    if args.choices and args.task:
        raise UsageError(f"--task {args.task} has no options to choose from; leave out --choices")
    name: str = args.defense or default_defense(args)
    method = entry_of(name)
    if method.tasks == ("multiple_choice",) and not args.choices:
        raise UsageError(f"--defense {name} needs the options to vote on: --choices A B C")
    if args.choices and not method.takes_choices:
        fitting = [m.name for m in (*METHODS.values(), *BASELINES.values()) if m.takes_choices]
        raise UsageError(f"--choices goes with --defense {' or '.join(fitting)}, not {name}")
    check_probabilities(args.model, name)
    return name


def _check_choices(choices: Sequence[str]) -> None:
    from robustrag_integrations.defenses.voting.options import check_choices

    try:
        check_choices(choices)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def _retrieve(args: argparse.Namespace, progress: Progress) -> tuple[list[Passage], list[dict[str, str]]]:
    index, skipped = read_index(args, progress)
    found = index.search(args.question, args.top_k, per_source=per_source(args), by=args.group_by)
    return found, [{"path": s.path, "reason": s.reason} for s in skipped]


def _answer(args: argparse.Namespace, name: str, model: TextModel, passages: Sequence[Passage]) -> RobustAnswer:
    task: Task = "multiple_choice" if args.choices else args.task or "short_answer"
    defense = built_defense(args, name, model, task)
    defense.accept_sampling = args.accept_sampling
    try:
        answer: RobustAnswer = defense.answer(args.question, passages, choices=args.choices)
    except ValueError as error:  # the question does not fit into the model's window
        raise RobustRAGError(str(error)) from error
    return answer


def _advise(args: argparse.Namespace, answer: RobustAnswer, passages: Sequence[Passage]) -> None:
    """Explain why there is no answer or no radius, where the documents are the reason."""
    if not passages:
        complain("note: no passage shares a word with the question")
    elif args.group_by != PASSAGE and len(answer.groups) == 1 < len(passages) and answer.defense not in BASELINES:
        complain(_one_vote(args.group_by, passages))
    rules = VoteRules(**rules_of(args))
    for option, names in rules.unmatched(rules.isolate(passages)).items():
        for name in names:
            complain(f"note: --{option}: no passage found is from {printable(name, 60)!r}")


def _one_vote(group_by: str, passages: Sequence[Passage]) -> str:
    """Explain why there is only one vote, and what to do."""
    if group_by in (ORIGIN, SITE) or any(group_by in p.metadata for p in passages):
        return (
            "note: all passages found have one source, hence one vote; --group-by passage gives a vote to each, where "
            "they have different authors"
        )
    entries = sorted({str(name) for p in passages for name in p.metadata})
    there = f"; they have {printable(', '.join(entries), 100)}" if entries else ""
    return (
        f"note: no passage found has an entry {printable(group_by, 60)!r}, so that all share one vote{there}; "
        "--group-by origin gives a vote to each file or page"
    )
