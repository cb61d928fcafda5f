"""`robustrag eval`: data sets x models x defences x attacks, as one run that can be interrupted."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.cli.options import add_base_url, add_set, whole_number
from robustrag_integrations.cli.output import (
    EXIT_ANSWERED,
    EXIT_FAILURE,
    UsageError,
    complain,
    show_json,
    terminal_width,
)
from robustrag_integrations.defenses.registry import METHODS, entry_of
from robustrag_integrations.evaluation.attacks.families import ATTACKS
from robustrag_integrations.evaluation.run.config import (
    DEFAULTS,
    ConfigError,
    defense_names,
    listed,
    load_config,
    read_config,
    with_group_by,
)
from robustrag_integrations.grouping.votes import RULES
from robustrag_integrations.models.providers import PROVIDERS, takes
from robustrag_integrations.text.prompts import TASKS

if TYPE_CHECKING:
    from robustrag_integrations.evaluation.run.runner import Finished

_OF_MODELS = ("dtype", "max_new_tokens", "max_context_tokens")

DESCRIPTION = """\
Evaluate defences: ask every question of a data set, cleanly and under attack, score the
answers, and certify the clean ones. Every row is on disk as soon as it is made; run the
same command again to resume after a crash or Ctrl-C.
"""

EPILOG = """\
examples:
  robustrag eval --limit 5 --certify 1
  robustrag eval --data questions.jsonl --model openai:NAME --base-url http://localhost:8000/v1
  robustrag eval --attack pia poison --set ranks=first,last --set top_k=5,10

exit codes: 0 done, 1 failure or failed rows, 2 wrong usage, 130 interrupted
"""
DETAILS = f"""\
a config file (YAML) has the keys that --show-config prints; flags win over it.
docs/guide/evaluation.md says what data files, attacks and keys there are.

attacks: {textwrap.fill(" ".join(ATTACKS), 84, subsequent_indent="  ", break_on_hyphens=False)};
  module:function is a custom one.

The cache of model calls holds responses in plain text; only its owner can read it.
"""
BASIC = frozenset(
    {"config", "data", "models", "base_url", "methods", "attacks", "certify", "limit", "set", "output", "json"}
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    several: dict[str, Any] = {"action": "extend", "nargs": "+"}
    add = parser.add_argument
    add("config", nargs="?", metavar="CONFIG", help="a YAML file (optional)")
    add("--show-config", action="store_true", help="print the configuration, and run nothing")
    add("--data", **several, metavar="D", help="demo (default), or files of questions")
    about = "default: as the data says"
    add("--task", **several, choices=TASKS, metavar="TASK", dest="tasks", help=f"{', '.join(TASKS)}; {about}")
    about = (
        f"bundled (default), or a model of yours\n{', '.join(each.form for each in PROVIDERS)} of a transformers model"
    )
    add("--model", **several, metavar="M", dest="models", help=about)
    names = defense_names()
    about = f"default vanilla consensus; {', '.join(n for n in names if n not in DEFAULTS['methods'])}"
    add("--method", **several, choices=names, metavar="M", dest="methods", help=about)
    about = "default pia poison; none; others: --help-all"
    add("--attack", **several, metavar="A", dest="attacks", help=about)
    about = "certify clean answers against K corrupted passages\nby default 1"
    add("--certify", nargs="*", type=whole_number(0, 100), metavar="K", help=about)
    add_run(parser)
    add("--output", metavar="FILE", help="the rows, as JSON lines (default eval.jsonl)\nor the name of the config")
    add_shown(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of every run: what of the questions, with which settings, and how computed."""
    add_base_url(parser)
    add = parser.add_argument
    add("--limit", type=whole_number(1, 10_000_000), metavar="N", help="only the first N questions")
    add_set(
        parser,
        "any other key of a configuration or setting\n(may be repeated), of the methods or of a model in this process: "
        "ranks=first,last, top_k=5,10, metric=exact, judge=MODEL, min_support=1,2,3, seed=1, dtype=bfloat16",
    )
    about = "rows at a time (default 1); a model in this process still makes one row at a time"
    add("--concurrency", type=whole_number(1, 1000), default=1, metavar="N", help=about)
    about = "folder of the cache of model calls (default ~/.cache/robustrag/calls)"
    add("--cache", metavar="DIR", help=about)
    add("--no-cache", action="store_true", help="keep no model calls")


def add_shown(parser: argparse.ArgumentParser) -> None:
    """Add what is printed."""
    about = "print the summary as data, with 95%% intervals and costs"
    parser.add_argument("--json", action="store_true", help=about)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation and print its summary."""
    try:
        mapping = given_config(args)
    except (ConfigError, ValueError) as error:
        raise UsageError(str(error)) from error
    if args.show_config:
        import yaml

        mapping["methods"] = [with_group_by(entry) for entry in mapping["methods"]]
        print(yaml.safe_dump(json.loads(json.dumps(mapping)), sort_keys=False).rstrip())
        return EXIT_ANSWERED
    output = args.output or f"{Path(args.config).stem if args.config else 'eval'}.jsonl"
    done = run_evaluation(args, mapping, output)
    report(done, as_json=args.json)
    complain(f"{output} holds {count_of(len(done.rows), 'row')}, {done.made} of them new")
    return exit_code(done)


def given_config(args: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration that file and flags make together, with defaults filled in."""
    in_file = load_config(args.config) if args.config else {}
    names = ("data", "tasks", "models", "methods", "attacks", "limit")
    merged = {**DEFAULTS, **in_file, **{name: v for name in names if (v := getattr(args, name)) is not None}}
    if args.certify is not None:
        before = merged["certify"] if isinstance(merged["certify"], Mapping) else {}
        merged["certify"] = {**before, "corruption_sizes": args.certify or [1]}
    return with_set(merged, args)


def with_set(config: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return a configuration with --base-url, and with each --set where it belongs."""
    config |= {name: value for name, value in args.set if name in DEFAULTS}
    models, defenses = listed(config["models"]), listed(config["methods"])
    if args.base_url is not None:
        judge = _as_mapping(config["judge"] or {})
        if judged := takes(str(judge.get("name")), "base_url"):
            config = {**config, "judge": {"base_url": args.base_url, **judge}}
        models = _each(models, "base_url", args.base_url, "model", required=not judged)
    for name, value in args.set:
        if name in _OF_MODELS:
            models = _each(models, name, value, "model")
        elif name not in DEFAULTS:
            defenses = _each(defenses, name, value, "method")
    return {**config, "models": models, "methods": defenses}


def _each(entries: Sequence[Any], key: str, value: Any, kind: str, *, required: bool = True) -> list[Any]:

    def taken(name: str) -> bool:
        if kind == "model":
            return takes(name, key)
        known = {s.name for s in entry_of(name).settings} | {"exemplars"}
        return key in known or (name in METHODS and key in RULES)

    fits = [isinstance(e, (str, Mapping)) and taken(str(_as_mapping(e).get("name"))) for e in entries]
    if required and not any(fits):
        raise UsageError(f"{key.replace('_', '-') if kind == 'model' else key}: no --{kind} here takes it")
    return [{**_as_mapping(e), key: value} if fit else e for e, fit in zip(entries, fits, strict=True)]


def _as_mapping(entry: Any) -> Mapping[str, Any]:
    return {"name": entry} if isinstance(entry, str) else entry


def run_evaluation(args: argparse.Namespace, mapping: Mapping[str, Any], output: str | None) -> Finished:
    """Compute the rows of a configuration; model calls are kept unless `--no-cache` is given."""
    from robustrag_integrations.evaluation.data.datasets import DatasetError
    from robustrag_integrations.evaluation.run.cache import CacheError
    from robustrag_integrations.evaluation.run.journal import JournalError
    from robustrag_integrations.evaluation.run.runner import LocalEngine, evaluate

    bar = _Bar("done" if output is None else f"in {printable(output, 200)}")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    cache = args.cache or os.path.join(home, "robustrag", "calls")
    try:
        config = read_config(mapping)
        engine = LocalEngine(None if args.no_cache else cache, args.concurrency)
        return evaluate(config, output=output, engine=engine, on_start=bar.start, on_row=bar.row)
    except (CacheError, ConfigError, DatasetError, JournalError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"interrupted; {bar.standing}. Run the same command again to resume") from error
    finally:
        bar.close()


class _Bar:
    """Shows on standard error the progress of a run and the time left."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._bar: Any = None
        self._total = self._done = 0

    @property
    def standing(self) -> str:
        """The run's progress in words."""
        return f"{self._done} of {self._total} rows are {self._where}"

    def start(self, total: int, known: int, notes: Sequence[str]) -> None:
        """Begin a run with this many rows, of which some are known."""
        from tqdm import tqdm

        complain(*notes)
        self._total, self._done = total, known
        if known:
            complain(f"{self.standing} already")
        if total > known:
            patience = 0.2 if sys.stderr.isatty() else 30.0  # a log file needs few lines
            about: dict[str, Any] = {"total": total, "initial": known, "unit": "row", "desc": "loading models"}
            self._bar = tqdm(**about, file=sys.stderr, mininterval=patience, dynamic_ncols=True)

    def row(self, row: Mapping[str, Any]) -> None:
        """Count a finished row."""
        self._done += row["error"] is None
        self._bar.set_description("", refresh=False)
        self._bar.update()

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()


def report(done: Finished, *, as_json: bool) -> None:
    """Write to standard output what came out: sentences, tables, and what weakens them."""
    from robustrag_integrations.evaluation.score.summary import summarise
    from robustrag_integrations.evaluation.show.tables import WIDTH, main_tables, outcome_in_words, remarks

    lines = summarise(done.rows)
    if as_json:
        show_json({"schema": "robustrag/eval-summary/3", "lines": [asdict(line) for line in lines]})
        return
    width = terminal_width() or WIDTH
    tables = [table.as_text(width) for table in main_tables(lines)]
    said, notes = _in_lines(outcome_in_words(lines), width), _in_lines(remarks(lines), width)
    print("\n\n".join([said, *tables, notes]).rstrip())


def _in_lines(texts: Sequence[str], width: int) -> str:
    return "\n".join(textwrap.fill(text, width, subsequent_indent="  ", break_on_hyphens=False) for text in texts)


def exit_code(done: Finished) -> int:
    """Return the exit code of a run; failed rows are reported."""
    if not done.failed:
        return EXIT_ANSWERED
    complain(f"{count_of(done.failed, 'row')} failed; run the same command again to retry them")
    return EXIT_FAILURE
