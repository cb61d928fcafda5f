"""`robustrag certify`: tau for every question of a data set; the certifying part of `robustrag eval`."""

from __future__ import annotations

import argparse
from typing import Any

from robustrag_integrations.cli.eval import add_run, add_shown, exit_code, report, run_evaluation, with_set
from robustrag_integrations.cli.options import model_name, named_model, whole_number
from robustrag_integrations.cli.output import complain
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.run.config import MODES
from robustrag_integrations.models.providers import described

DESCRIPTION = """\
Certify answers: for every question, the score that no attacker of a given strength can
get below, whatever they write. It takes the clean passages and the right answer;
no attack is run.
"""

EPILOG = """\
attackers:
  injection      puts passages anywhere; the last ones of a full list drop out
  modification   also removes as many passages of their choice

The second table is the mean over questions of what is guaranteed; what is undecided counts
as 0. The rows are those of robustrag eval --attack none --set top_k=all --certify 1.

examples:
  robustrag certify --limit 5
  robustrag certify --data questions.jsonl --corruption-size 1 2 3 --output certificates.jsonl

exit codes: 0 done, 1 failure or failed questions, 2 wrong usage, 130 interrupted
"""


BASIC = frozenset({"data", "method", "corruption_size", "attack", "model", "limit", "output", "json"})


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    about = "demo (default), or files of questions"
    parser.add_argument("--data", nargs="+", default=["demo"], metavar="DATA", help=about)
    parser.add_argument("--method", choices=tuple(METHODS), default="consensus", help="default consensus")
    about = "number of passages that the attacker controls (default 1)"
    whole = whole_number(0, 100)
    parser.add_argument("--corruption-size", nargs="+", type=whole, default=[1], metavar="K", help=about)
    about = "the kind of attacker (default injection)"
    parser.add_argument("--attack", choices=MODES, default="injection", help=about)
    parser.add_argument("--model", type=model_name, default="bundled", metavar="MODEL", help=described("bundled"))
    add_run(parser)
    parser.add_argument("--output", metavar="FILE", help="keep the rows as JSON lines, and resume from there")
    add_shown(parser)


def run(args: argparse.Namespace) -> int:
    """Certify the questions and print a summary."""
    task = "multiple_choice" if METHODS[args.method].tasks == ("multiple_choice",) else "short_answer"
    short = {"max_context_tokens": 256} if named_model(args.model).local else {}
    config: dict[str, Any] = {
        "data": [{"source": source, "task": task} for source in args.data],
        "limit": args.limit,
        "models": [{"name": args.model, **short}],
        "judge": None,
        "methods": [args.method],
        "attacks": [],
        "top_k": 10 if args.data == ["demo"] else "all",
        "metric": None,
        "certify": {"corruption_sizes": args.corruption_size, "attacks": [args.attack]},
    }
    config = with_set(config, args)
    done = run_evaluation(args, config, args.output)
    report(done, as_json=args.json)
    made = [found for row in done.rows for found in row.get("certificates") or ()]
    reasons = [found["stopped"] for found in made if not found["certified"] and found["stopped"]]
    for reason in dict.fromkeys(reasons):
        complain(f"undecided in {reasons.count(reason)} certificates: {reason}")
    return exit_code(done)
