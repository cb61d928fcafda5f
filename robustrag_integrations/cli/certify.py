"""`robustrag certify`: tau for every question of a data set; the certifying part of `robustrag eval`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from robustrag_integrations.cli.arguments import add_model, add_model_settings, add_setting, passages_asked
from robustrag_integrations.cli.defending import (
    add_settings,
    add_thresholds,
    check_defense,
    fill_in,
    given_settings,
    rules_of,
)
from robustrag_integrations.cli.flags import add_field, add_fields, given_fields
from robustrag_integrations.cli.models import named_model, with_settings
from robustrag_integrations.cli.output import UsageError, complain, show, show_json, terminal_width
from robustrag_integrations.cli.running import add_how, exit_code, run_evaluation
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.run.config import MODES, CertifySpec, EvalConfig
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.grouping.votes import RULES

_MOST_REASONS = 5
DESCRIPTION = """\
Certify answers: for every question, the score that no attacker of a given strength can
get below (tau), whatever they write. It takes the clean passages and the right answer;
no attack is run.
"""

EPILOG = """\
data: as for robustrag eval: demo, or a file of questions with answers and passages, and choices
  for --defense voting.

attackers:
  injection      puts passages anywhere; the last ones of a full list drop out
  modification   also removes as many passages of their choice

cacc k' is certified accuracy: the mean over questions of tau, what is guaranteed. Certificates
that --max-model-calls stopped count as tau 0, though no attack is known. With --output the same
command resumes. The rows are those of robustrag eval --attack none --top-k all --certify 1.

examples:
  robustrag certify demo --limit 5
  robustrag certify questions.jsonl --corruption-size 1 2 3 --output certificates.jsonl
  robustrag certify demo --defense voting --attack modification --limit 10
  robustrag certify demo --metric my_metrics:f1

exit codes: 0 done, 1 failure or failed questions, 2 wrong usage, 130 interrupted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("data", metavar="DATA", help="demo, or a file of questions")
    parser.add_argument(
        "--defense", choices=tuple(METHODS), help="default consensus, or the one that takes the settings given"
    )
    add_field(parser, CertifySpec, "corruption_sizes", metavar="K")
    parser.add_argument("--attack", choices=MODES, default="injection", help="the kind of attacker (default injection)")
    add_field(parser, EvalConfig, "metric")
    parser.add_argument(
        "--top-k", type=passages_asked, metavar="K", help="passages per question (default: all; 10 for demo)"
    )
    for name in ("group_size", "group_by"):
        add_setting(parser, RULES[name])
    add_field(parser, EvalConfig, "limit")
    parser.add_argument("--output", metavar="FILE", help="keep the rows as JSON lines, and resume from there")
    parser.add_argument("--json", action="store_true", help="print the summary as data instead of a table")
    add_settings(parser)
    add_model(parser)
    add_model_settings(parser)
    add_thresholds(parser)
    add_fields(parser.add_argument_group("limits"), CertifySpec, "max_model_calls", "sample", "seed")
    add_how(parser.add_argument_group("how it is run"))


def run(args: argparse.Namespace) -> int:
    """Certify the questions and print a summary."""
    fill_in(args)
    if getattr(args, "task", None) in ("long_form", "list"):
        raise UsageError(
            f"--settings {args.settings!r} is for long answers or lists; long ones need a judge: robustrag eval --judge"
        )
    check_defense(args)
    done = run_evaluation(args, config_of(args), args.output)
    from robustrag_integrations.evaluation.score.summary import summarise
    from robustrag_integrations.evaluation.show.lines import lines_table, repeats_in_sum, warnings_in_sum

    lines, undecided = summarise(done.rows), _undecided(done.rows)
    if args.json:
        data = {"lines": [asdict(line) for line in lines], "undecided": undecided}
        show_json({"schema": "robustrag/certify/1", **data})
    else:
        show(lines_table(lines, terminal_width()))
    complain(*repeats_in_sum(lines), *warnings_in_sum(lines))
    complain(*(f"undecided in {count} certificates: {why}" for why, count in undecided.items()))
    for reason in dict.fromkeys(row["error"]["message"] for row in done.rows if row["error"]):
        complain(f"failed: {reason}")
    return exit_code(done)


def config_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration that `robustrag eval` runs for these arguments."""
    model = named_model(args.model, args.base_url)
    short = {"max_context_tokens": 256} if model.local else {}
    served = {"base_url": args.base_url} if args.base_url else {}
    only_choices = METHODS[args.defense].tasks == ("multiple_choice",)
    return {
        "data": [{"source": args.data, "task": "mc" if only_choices else "qa"}],
        "limit": args.limit,
        "models": with_settings([{"name": args.model, **served, **short}], args),
        "defenses": [
            {
                "name": args.defense,
                "group_by": PASSAGE,
                **rules_of(args),
                **given_settings(args),
            },
        ],
        "attacks": [],
        "top_k": args.top_k or (10 if args.data == "demo" else "all"),
        "metric": args.metric,
        "certify": {
            "attacks": [args.attack],
            **given_fields(args, ("corruption_sizes", "max_model_calls", "sample", "seed")),
        },
    }


def _undecided(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Count the reasons why certificates were not decided, the commonest first."""
    made = [found for row in rows for found in row.get("certificates") or ()]
    reasons = Counter(found["stopped"] for found in made if not found["certified"] and found["stopped"])
    return dict(reasons.most_common(_MOST_REASONS))
