"""`robustrag certify`: tau for every question of a data set."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from robustrag_integrations.cli.arguments import add_command, add_model, whole_number
from robustrag_integrations.cli.exits import EXIT_ANSWERED, UsageError
from robustrag_integrations.cli.models import load_model, named_model
from robustrag_integrations.cli.output import Progress, complain, show, show_json
from robustrag_integrations.cli.questions import read_answered
from robustrag_integrations.cli.thresholds import (
    add_thresholds,
    check_probabilities,
    check_thresholds,
    given_thresholds,
)
from robustrag_integrations.display import printable, table
from robustrag_integrations.evaluation.data.datasets import EvalQuestion
from robustrag_integrations.evaluation.run.journal import Journal, JournalError

_DESCRIPTION = """\
Certify answers: for every question, the score that no attacker of a given strength can
get below (tau), whatever they write. It takes the clean passages and the right answer;
no attack is run.
"""

_EPILOG = """\
data:
  demo: the questions about the fictional world that ships with the package; or a file
  with one question per line (.jsonl) or a JSON list of them (.json), gzipped or not:
  {"question": "...", "answer": "..." or [...], "passages": ["...", {"text": "...",
  "source": "..."}], "choices": [...]} (choices for --defense voting). The layout of the
  paper's data files ("correct answer", "context", ...) is read as well.

attackers:
  injection      puts passages anywhere; the last ones of a full list drop out
  modification   also removes as many passages of their choice

reading the table:
  mean tau       certified accuracy: the mean over questions of what is guaranteed
  tau > 0        questions with a guarantee
  undecided      stopped by --max-model-calls: counted as tau 0, though no attack is known
  estimate       mean over undecided questions of the lowest sampled score; no guarantee

--output keeps every certificate as a line of JSON. Run the same command again to go on
where it stopped; questions that are in the file already are not certified again.

examples:
  robustrag certify demo --limit 5
  robustrag certify questions.jsonl --corruption-size 1 2 3 --output certificates.jsonl
  robustrag certify demo --defense voting --attack modification --limit 10

exit codes: 0 done, 2 wrong usage, 1 failure
"""

_SETTINGS = ("defense", "model", "base_url", "corruption_size", "attack", "top_k", "group_size", "metric")
_LIMITS = ("max_model_calls", "sample", "seed")


def add(commands: Any) -> None:
    """Add the command to the parser."""
    about = "the score that no attacker can get below, for a data set"
    parser = add_command(commands, "certify", run, about, _DESCRIPTION, _EPILOG)
    parser.add_argument("data", metavar="DATA", help="demo, or a file of questions")
    parser.add_argument(
        "--defense", choices=("keyword", "decoding", "voting"), default="keyword", help="default keyword"
    )
    parser.add_argument(
        "--corruption-size",
        nargs="+",
        type=whole_number(0, 100),
        default=[1],
        metavar="K",
        help="how many passages the attacker controls (default 1); several share their model calls",
    )
    parser.add_argument("--attack", choices=("injection", "modification"), default="injection")
    parser.add_argument("--metric", choices=("contains", "exact"), default="contains", help="default contains")
    parser.add_argument(
        "--top-k", type=whole_number(1, 1000), metavar="K", help="passages per question (default: all; 10 for demo)"
    )
    parser.add_argument("--group-size", type=whole_number(1, 100), default=1, metavar="N", help="passages per group")
    parser.add_argument("--limit", type=whole_number(1, 1_000_000), metavar="N", help="only the first N questions")
    parser.add_argument("--output", metavar="FILE", help="append certificates as JSON lines, and go on from there")
    parser.add_argument("--json", action="store_true", help="print the summary as data instead of a table")
    add_model(parser)
    add_thresholds(parser)
    _add_limits(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-model-calls", type=whole_number(1, 10_000_000), default=1000, metavar="N")
    group.add_argument(
        "--sample", type=whole_number(0, 1_000_000), default=0, metavar="N", help="samples for estimates (default 0)"
    )
    group.add_argument("--seed", type=whole_number(0, 999_999_999), default=0, metavar="N", help="of the samples")


def run(args: argparse.Namespace) -> int:
    """Certify the questions and print a summary."""
    check_thresholds(args, args.defense)
    check_probabilities(args.model, args.defense)
    progress = Progress()
    progress.step(f"reading {args.data}")
    questions = read_answered(args.data, args.top_k, args.limit)
    if args.defense == "voting" and (bare := sum(not q.choices for q in questions)):
        raise UsageError(f"--defense voting needs choices, and {bare} of {len(questions)} questions have none")
    fingerprint = named_model(args.model, args.base_url).fingerprint()
    wanted = [(_key(args, fingerprint, q), q) for q in questions]
    with _journal(args.output) as journal:
        known = _known(journal)
        new = [(key, q) for key, q in wanted if key not in known]
        if known and len(new) < len(wanted):
            complain(f"{len(wanted) - len(new)} of {len(wanted)} questions are in {args.output} already")
        if new:
            progress.step(f"loading the model {args.model}")
            _certify(args, new, known, journal, progress)
    rows = [certificate for key, _ in wanted for certificate in known[key]]
    summary = [_summary(size, rows) for size in sorted(set(args.corruption_size))]
    if args.json:
        show_json({"schema": "robustrag/certify/1", "questions": len(wanted), "sizes": summary})
    else:
        show(_as_table(args, summary))
    return EXIT_ANSWERED


def _key(args: argparse.Namespace, fingerprint: str, question: EvalQuestion) -> str:
    """What a certificate in the output file is about: the model, the question, its passages, and every setting."""
    setup = {name: getattr(args, name) for name in (*_SETTINGS, *_LIMITS)}
    about = [
        setup,
        fingerprint,
        given_thresholds(args, args.defense),
        question.question,
        question.answers,
        question.choices,
        [(p.text, p.source) for p in question.passages],
    ]
    return hashlib.sha256(json.dumps(about, ensure_ascii=True).encode()).hexdigest()[:24]


@contextmanager
def _journal(path: str | None) -> Iterator[Journal | None]:
    """The output file, where there is one: every certificate is on disk before the next question is begun."""
    try:
        with nullcontext() if path is None else Journal(path) as journal:
            yield journal
    except JournalError as error:
        raise UsageError(f"--output: {error}") from error


def _known(journal: Journal | None) -> dict[str, list[dict[str, Any]]]:
    """The certificates in an output file. Whoever may write to the file is not trusted to have written certificates."""
    if journal is None:
        return {}
    for number, row in enumerate(journal.rows, 1):
        if not _is_stored(row):
            raise UsageError(
                f"{printable(str(journal.path), 200)}, line {number} is no certificate; give another --output"
            )
    return {row["key"]: row["certificates"] for row in journal.rows}


def _is_stored(row: dict[str, Any]) -> bool:
    """Whether a line of the output file can be summed up."""
    certificates = row.get("certificates")
    return isinstance(row.get("key"), str) and isinstance(certificates, list) and all(map(_can_be_summed, certificates))


def _can_be_summed(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("certified"), bool):
        return False
    estimate = found.get("estimate")
    if estimate is not None and not (isinstance(estimate, dict) and _is_number(estimate.get("value"))):
        return False
    wholes = [found.get("corruption_size"), found.get("model_calls")]
    return _is_number(found.get("tau")) and all(isinstance(n, int) and _is_number(n) for n in wholes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12


def _certify(
    args: argparse.Namespace,
    new: Sequence[tuple[str, EvalQuestion]],
    known: dict[str, list[dict[str, Any]]],
    journal: Journal | None,
    progress: Progress,
) -> None:
    from robustrag_integrations.metrics import contains_answer, exact_choice

    defense = _defense(args)
    metric = {"contains": contains_answer, "exact": exact_choice}[args.metric]
    for number, (key, q) in enumerate(new, 1):
        progress.step(f"question {number} of {len(new)}: {printable(q.question, 80)}")
        try:
            found = defense.certify(
                q.question,
                q.passages,
                q.answers,
                corruption_size=args.corruption_size,
                metric=metric,
                attack=args.attack,
                choices=q.choices if args.defense == "voting" else None,
                top_k=args.top_k or (10 if args.data == "demo" else None),
                max_model_calls=args.max_model_calls,
                sample=args.sample,
                seed=args.seed,
            )
        except ValueError as error:
            raise UsageError(f"{printable(q.question, 80)}: {error}") from error
        known[key] = [c.to_dict() for c in found]
        if journal is not None:
            journal.append({"key": key, "certificates": known[key]})


def _defense(args: argparse.Namespace) -> Any:
    model: Any = load_model(args.model, args.base_url, max_context_tokens=256)
    settings = {"group_size": args.group_size, **given_thresholds(args, args.defense)}
    if args.defense == "keyword":
        from robustrag_integrations.defenses.keyword.defense import KeywordAggregation

        return KeywordAggregation(model, **settings)
    if args.defense == "voting":
        from robustrag_integrations.defenses.voting.defense import MajorityVoting

        return MajorityVoting(model, **settings)
    from robustrag_integrations.defenses.decoding.defense import DecodingAggregation

    return DecodingAggregation(model, **settings)


def _summary(size: int, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [r for r in rows if r["corruption_size"] == size]
    undecided = [r for r in found if not r["certified"]]
    estimates = [r["estimate"]["value"] for r in undecided if r["estimate"]]
    return {
        "corruption_size": size,
        "questions": len(found),
        "mean_tau": sum(r["tau"] for r in found) / len(found) if found else 0.0,
        "guaranteed": sum(r["tau"] > 0 for r in found),
        "undecided": len(undecided),
        "mean_estimate": sum(estimates) / len(estimates) if estimates else None,
        "model_calls": sum(r["model_calls"] for r in found),
    }


def _as_table(args: argparse.Namespace, summary: Sequence[dict[str, Any]]) -> str:
    rows: list[tuple[str, ...]] = [
        (
            str(s["corruption_size"]),
            str(s["questions"]),
            f"{s['mean_tau']:.3f}",
            str(s["guaranteed"]),
            str(s["undecided"]),
            "-" if s["mean_estimate"] is None else f"{s['mean_estimate']:.3f}",
            str(s["model_calls"]),
        )
        for s in summary
    ]
    header = ("corrupted", "questions", "mean tau", "tau > 0", "undecided", "estimate", "model calls")
    title = f"{args.defense}, {args.attack}, {args.metric}, model {printable(args.model, 60)}"
    return f"{title}\n\n{table(header, rows, limits=(9, 9, 9, 9, 9, 9, 12))}"
