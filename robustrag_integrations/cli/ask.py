"""`robustrag ask`: one question about your own documents."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.cli.arguments import (
    add_command,
    add_model,
    add_prices,
    existing,
    origin_votes,
    some_text,
    whole_number,
)
from robustrag_integrations.cli.exits import EXIT_ABSTAINED, EXIT_ANSWERED, UsageError
from robustrag_integrations.cli.models import load_model, note_probe
from robustrag_integrations.cli.output import Progress, complain, show, show_json
from robustrag_integrations.cli.thresholds import (
    add_thresholds,
    check_probabilities,
    check_thresholds,
    given_thresholds,
)
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, METHODS, entry_of
from robustrag_integrations.display import printable
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.passages import ORIGIN, PASSAGE, Passage
from robustrag_integrations.usage import cost_in_words, prices_of
from robustrag_integrations.votes import HASTE, VoteRules

_DESCRIPTION = """\
Read documents, retrieve the passages that fit a question, ask the model about each
source alone, and answer with what enough of them agree on. The radius says how many
sources could have said anything else without changing the answer.
"""

_EPILOG = """\
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
  robustrag ask "Who won?" --docs news/ --model openai:my-model --base-url http://localhost:8000/v1
  robustrag ask "Who won?" --docs news/ --defense decoding --model openai-completions:my-model \\
    --base-url http://localhost:8000/v1

exit codes: 0 answered, 3 abstained (no answer was agreed on), 2 wrong usage, 1 failure
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "ask", run, "ask your own documents", _DESCRIPTION, _EPILOG)
    parser.add_argument("question", type=some_text, metavar="QUESTION", help="the question, in quotes")
    parser.add_argument(
        "--docs", nargs="+", required=True, type=existing, metavar="PATH", help="files and folders to read"
    )
    parser.add_argument(
        "--defense",
        choices=(*METHODS, *BASELINES),
        help="default keyword, with --choices voting. "
        + "; ".join(f"{m.name}: {m.summary}" for m in (*METHODS.values(), *BASELINES.values())),
    )
    add_model(parser)
    _add_retrieval(parser)
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


def _add_retrieval(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("retrieval")
    group.add_argument(
        "--top-k",
        type=whole_number(1, 1000),
        default=10,
        metavar="K",
        help="how many sources are asked; with --group-by passage, how many passages (default 10)",
    )
    group.add_argument(
        "--per-source",
        type=whole_number(1, 100),
        default=2,
        metavar="N",
        help="how many passages of one source are read at most (default 2)",
    )
    group.add_argument(
        "--group-by",
        type=some_text,
        default=ORIGIN,
        metavar="WHAT",
        help="what has one vote: origin (default: a file or page), site, passage, or an entry of JSONL rows such as "
        "author",
    )
    group.add_argument(
        "--copies",
        choices=("report", "one_vote"),
        default="report",
        help="sources with the same text: report them (default), or count those that answer alike once",
    )
    group.add_argument(
        "--weights",
        nargs="+",
        type=origin_votes,
        metavar="ORIGIN=N",
        help="votes of a source in place of one, 0 to leave it out: handbook.pdf=3 x.com/forum=0; the radius then "
        "counts votes",
    )
    group.add_argument(
        "--min-groups", type=whole_number(0, 1000), default=0, metavar="N", help="abstain with fewer sources"
    )
    group.add_argument(
        "--min-radius", type=whole_number(0, 1000), default=0, metavar="N", help="abstain below this radius"
    )
    group.add_argument(
        "--stop-when-decided",
        action="store_true",
        help="consensus, voting: ask no longer than the answer, and --min-radius, can still change",
    )
    group.add_argument(
        "--wave-size",
        type=whole_number(1, 1000),
        metavar="N",
        help="with --stop-when-decided: how many sources are asked at once (default all)",
    )
    group.add_argument(
        "--chunk-size",
        type=whole_number(50, 100_000),
        default=600,
        metavar="N",
        help="the longest passage, in characters (default 600)",
    )


def run(args: argparse.Namespace) -> int:
    """Answer the question; see the module's help text."""
    name = _defense_name(args)
    check_thresholds(args, name)
    _check_rules(args, name)
    if args.choices:
        _check_choices(args.choices)
    progress = Progress()
    progress.step(f"reading {', '.join(args.docs)}")
    passages, skipped = _retrieve(args, progress)
    progress.step(f"loading the model {args.model}")
    model = load_model(args.model, args.base_url)
    note_probe(model, args.probe)
    progress.step(f"asking about {len(passages)} passages")
    answer = _answer(args, name, model, passages)
    prices = None if args.prices is None else prices_of(args.prices)
    if args.json:
        show_json(
            {
                "schema": "robustrag/ask/1",
                "model": model.description,
                "answer": answer.to_dict(),
                "passages": [{"id": p.id, "source": p.source, "text": p.text} for p in passages],
                "skipped": skipped,
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
    name: str = args.defense or ("voting" if args.choices else "keyword")
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
    from robustrag_integrations.corpus import BM25Index, read_documents, split

    reading = read_documents(args.docs, on_file=lambda done, total: progress.count("files read", done, total))
    for skipped in reading.skipped:
        complain(f"skipped: {skipped.reason}")
    chunks = split(reading.documents, args.chunk_size)
    progress.step(f"searching {len(chunks):,} passages of {len(reading.documents):,} documents")
    per_source = None if args.group_by == PASSAGE else args.per_source
    found = BM25Index(chunks).search(args.question, args.top_k, per_source=per_source, by=args.group_by)
    return found, [{"path": s.path, "reason": s.reason} for s in reading.skipped]


def _answer(args: argparse.Namespace, name: str, model: TextModel, passages: Sequence[Passage]) -> RobustAnswer:
    defense = _defense(args, name, model)
    defense.accept_sampling = args.accept_sampling
    try:
        answer: RobustAnswer = defense.answer(args.question, passages, choices=args.choices)
    except ValueError as error:  # the question does not fit into the model's window
        raise RobustRAGError(str(error)) from error
    return answer


def _defense(args: argparse.Namespace, name: str, model: TextModel) -> Defense:
    task = "multiple_choice" if args.choices else "short_answer"
    made: Defense
    if name in BASELINES:
        made = BASELINES[name].build(model, task=task, **given_thresholds(args, name))
        return made
    if METHODS[name].needs_probabilities and not isinstance(model, DecodingModel):
        raise UsageError(f"--defense {name} needs token probabilities, which {model.description} does not give")
    made = METHODS[name].build(model, task=task, **_rules(args), **given_thresholds(args, name))
    return made


def _check_rules(args: argparse.Namespace, name: str) -> None:
    """Raise UsageError if the defence cannot count votes like this, before anything is read."""
    given = {setting: value for setting in (*HASTE, "weights") if (value := getattr(args, setting))}
    if given and name in BASELINES:
        raise UsageError(f"--{next(iter(given)).replace('_', '-')} does nothing for --defense {name}; leave it out")
    if given:
        try:
            METHODS[name].load().check_rules(VoteRules(**_rules(args)))
        except ValueError as error:
            raise UsageError(str(error)) from error


def _rules(args: argparse.Namespace) -> dict[str, Any]:
    names = ("group_by", "copies", "min_groups", "min_radius", *HASTE)
    weights = dict(args.weights) if args.weights else None
    return {**{name: getattr(args, name) for name in names}, "weights": weights}


def _advise(args: argparse.Namespace, answer: RobustAnswer, passages: Sequence[Passage]) -> None:
    """Say why there is no answer or no radius, where the documents are the reason."""
    if not passages:
        complain("note: no passage shares a word with the question")
    elif args.group_by != PASSAGE and len(answer.groups) == 1 < len(passages) and answer.defense not in BASELINES:
        complain(
            "note: all passages found have one source, hence one vote; --group-by passage gives a vote to each, where "
            "they have different authors"
        )
    rules = VoteRules(**_rules(args))
    if isinstance(rules.weights, Mapping):
        found = {group.key for group in rules.isolate(passages)}
        for origin in rules.weights:
            if origin not in found:
                complain(f"note: --weights: no passage found is from {printable(origin, 60)!r}")
