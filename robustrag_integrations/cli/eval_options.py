"""The options of `robustrag eval`, and the configuration they make: a preset, then a file, then the flags."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustrag_integrations.attacks.families import ATTACKS
from robustrag_integrations.attacks.payloads import PREFIX
from robustrag_integrations.cli.arguments import (
    add_metric,
    add_model_settings,
    add_prices,
    existing,
    passages_asked,
    some_text,
    whole_number,
)
from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.cli.exporting import add_latex
from robustrag_integrations.cli.models import with_settings
from robustrag_integrations.cli.running import add_how
from robustrag_integrations.cli.settings import read_settings
from robustrag_integrations.cli.thresholds import threshold_help, thresholds, value_of
from robustrag_integrations.defenses.registry import METHODS, VANILLA, methods_that
from robustrag_integrations.defenses.settings_file import SavedSettings
from robustrag_integrations.entry_points import names_added
from robustrag_integrations.evaluation.data.questions import layout_names
from robustrag_integrations.evaluation.run.config import (
    DEFAULTS,
    MODES,
    TASK_OF,
    TASKS,
    defense_names,
    load_config,
)
from robustrag_integrations.evaluation.run.presets import PRESETS
from robustrag_integrations.grouping.votes import HASTE
from robustrag_integrations.models.providers import forms, forms_that_take, takes

_BEFORE = """\
a first run:
  robustrag eval --limit 5 --attack pia poison --rank first last --certify 1
  robustrag eval --preset paper-table1 --data questions.json.gz --limit 20
  robustrag eval study.yaml --output study.jsonl --csv study.csv --plots figures/

a config file (.yaml, .toml or .json) has the keys that --show-config prints:
  data: [demo, {source: rqa.json.gz, task: mc}]
  models: [bundled, {name: "openai:my-model", base_url: "http://localhost:8000/v1"}]
  defenses: [vanilla, {name: keyword, alpha: [0.2, 0.3], beta: 3}, decoding]
  attacks: [pia, {name: poison, ranks: [first, last], corruption_sizes: [1, 2]}]
  certify: {corruption_sizes: [1, 2], attacks: [injection, modification]}
  top_k: [10]
  metric: contains
  limit: 50
  prices: {input: 2.5, output: 10, cached_input: 1.25}
  runs: 1
  probes: [probe.json]
Several values of a setting make several setups. Flags win over the file, and the file
over the preset.

presets (the paper's tables and figures, on your data and model):
  paper-table1  paper-table2  modification  group-size  top-k  corruption  thresholds  eta
  runtime, and field (attacks beyond the paper's). Defences that a model cannot run are
  left out, and named; --defense picks some of the preset's, with their settings per task.

data: demo (questions about a fictional world), or a file in the paper's layout or your own:
  {"question": "...", "answer": "..." or [...], "passages": ["...", {"text": "...",
  "source": "..."}], "choices": [...], "incorrect": "..."} as a JSON list or as lines;
  .gz is fine. Attacks need "incorrect", the answer that the attacker wants.

  Read by their keys as well: RAMDocs, PoisonedRAG (with --contexts), AV Filter, SafeRAG
  and BIPIA; --layout names one.

attacks: {attacks};
  payloads:FILE (or --payloads) plants what others have collected, module:function is a
  custom one. The clean run always comes first.

"""

_AFTER = """
rows: --output holds a line of JSON per question, setup and attack. Rows that are there
  are not made again; failed rows are retried. Model calls are kept in --cache as well,
  so that a changed setting asks only what is new. The cache holds responses in plain
  text; only its owner can read it.

exit codes: 0 done, 1 failure or failed rows, 2 wrong usage, 130 interrupted (the same
  command resumes)
"""


def epilog() -> str:
    """The help text below the options, with what installed packages add; none of them is loaded for that."""
    groups = {"attacks": "attacks", "data": "datasets", "metrics": "metrics"}
    added = {word: names_added(f"robustrag.{group}") for word, group in groups.items()}
    listed = [f"  {word}: {' '.join(names)}" for word, names in added.items() if names]
    known = textwrap.fill(" ".join(ATTACKS.known), 84, subsequent_indent="  ", break_on_hyphens=False)
    before = _BEFORE.replace("{attacks}", known)
    return before + "\n".join([*(["of other packages:"] if listed else []), *listed, ""]) + _AFTER


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options of the command."""
    parser.add_argument("config", nargs="?", type=existing, metavar="CONFIG", help="a .yaml, .toml or .json file")
    parser.add_argument(
        "--preset", choices=tuple(PRESETS), metavar="NAME", help="a table or figure of the paper, see below"
    )
    parser.add_argument("--show-config", action="store_true", help="print the configuration, and run nothing")
    _add_what(parser.add_argument_group("what is evaluated"))
    _add_settings(parser.add_argument_group("settings of the defences; several values make several setups"))
    _add_certificates(parser.add_argument_group("certificates"))
    add_how(parser.add_argument_group("how it is run"))
    _add_results(parser.add_argument_group("results"))


def _add_what(group: Any) -> None:
    group.add_argument("--data", nargs="+", type=some_text, metavar="DATA", help="demo (default) or files, see below")
    group.add_argument(
        "--task",
        nargs="+",
        choices=TASKS,
        metavar="TASK",
        help="qa (short answers), mc (multiple choice), long (long answers); default: as the data says",
    )
    group.add_argument(
        "--layout",
        choices=layout_names(),
        metavar="NAME",
        help=f"of the data's rows, where their keys do not tell: {', '.join(layout_names())}",
    )
    group.add_argument(
        "--contexts",
        nargs="+",
        type=existing,
        metavar="PATH",
        help="files and folders in which BM25 finds passages for questions that bring none",
    )
    group.add_argument("--limit", type=whole_number(1, 10_000_000), metavar="N", help="only the first N questions")
    group.add_argument("--strict", action="store_true", help="stop at a bad row of the data")
    group.add_argument(
        "--model",
        nargs="+",
        type=some_text,
        metavar="MODEL",
        help=", ".join(forms()) + " of a transformers model (default bundled)",
    )
    group.add_argument("--base-url", metavar="URL", help=f"the server of {forms_that_take('base_url')}, of a judge too")
    add_model_settings(group)
    group.add_argument(
        "--defense",
        nargs="+",
        choices=defense_names(),
        metavar="DEFENSE",
        help=f"one or more of {', '.join(defense_names())}; default: vanilla keyword. no-rag asks without passages",
    )
    group.add_argument(
        "--settings",
        nargs="+",
        metavar="FILE",
        help="settings files, as robustrag tune writes them; each is one more defence (default beside it: vanilla)",
    )
    group.add_argument(
        "--attack",
        nargs="+",
        type=some_text,
        metavar="ATTACK",
        help="one or more of those listed below; default: pia poison",
    )
    group.add_argument(
        "--payloads",
        nargs="+",
        type=existing,
        metavar="FILE",
        help="also plant the payloads of these files (of garak, promptfoo, BIPIA, lists); without --attack, only them",
    )
    group.add_argument(
        "--rank",
        nargs="+",
        type=_rank,
        metavar="RANK",
        help="where planted texts go: first (default), middle, last, random, sweep (all ranks), 1 (the top), 2, ..., "
        "or several at once: 1+2, 9+10",
    )
    group.add_argument(
        "--corruption-size",
        nargs="+",
        type=whole_number(1, 100),
        metavar="K",
        help="number of planted passages (default 1)",
    )
    group.add_argument(
        "--mode",
        nargs="+",
        choices=MODES,
        metavar="MODE",
        help="injection (default): the last passages drop out; modification: passages are replaced",
    )
    group.add_argument("--repeat", type=whole_number(1, 1000), metavar="N", help="how often a planted text is repeated")
    group.add_argument(
        "--top-k", nargs="+", type=passages_asked, metavar="K", help="passages per question (default 10), or all"
    )
    group.add_argument("--judge", type=some_text, metavar="MODEL", help="the model that grades long answers")
    add_metric(group)
    group.add_argument(
        "--runs",
        type=whole_number(1, 1000),
        metavar="N",
        help="how often each clean question is asked, past the cache (default 1): for models that sample, the share of "
        "runs that are right with a radius, question by question",
    )
    group.add_argument(
        "--probe",
        nargs="+",
        type=existing,
        metavar="FILE",
        help="what robustrag probe --output found about the models; it stands in every answer and in the report",
    )
    group.add_argument("--seed", type=whole_number(0, 999_999_999), metavar="N", help="of random choices (default 0)")


def _add_settings(group: Any) -> None:
    for name, of_methods in thresholds().items():
        takes = value_of(of_methods)
        named = {} if {"choices", "metavar"} & set(takes) else {"metavar": name[0].upper()}
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, nargs="+", **takes, **named, help=threshold_help(of_methods))
    group.add_argument(
        "--group-size", nargs="+", type=whole_number(1, 100), metavar="N", help="passages per group (default 1)"
    )
    group.add_argument(
        "--group-by",
        nargs="+",
        type=some_text,
        metavar="WHAT",
        help="what has one vote: passage (default, as in the paper), origin, or site",
    )
    group.add_argument(
        "--stop-when-decided",
        action="store_true",
        default=None,
        help="consensus, voting: ask no longer than the answer can still change",
    )
    group.add_argument(
        "--wave-size",
        nargs="+",
        type=whole_number(1, 1000),
        metavar="N",
        help="with --stop-when-decided: how many groups are asked at once (default all)",
    )


def _add_certificates(group: Any) -> None:
    group.add_argument(
        "--certify",
        nargs="*",
        type=whole_number(0, 100),
        metavar="K",
        help="certify clean answers against K corrupted passages (1 when no number is given)",
    )
    group.add_argument(
        "--certify-attack",
        nargs="+",
        choices=MODES,
        metavar="MODE",
        help="the kind of attacker: injection (default), modification",
    )
    group.add_argument(
        "--max-model-calls", type=whole_number(1, 10_000_000), metavar="N", help="per certificate (default 1000)"
    )
    group.add_argument(
        "--sample", type=whole_number(0, 1_000_000), metavar="N", help="samples for estimates (default 0)"
    )


def _add_results(group: Any) -> None:
    group.add_argument(
        "--output", metavar="FILE", help="the rows, as JSON lines (default: name of preset or config, else eval.jsonl)"
    )
    add_prices(group)
    group.add_argument("--csv", metavar="FILE", help="the summary for a spreadsheet")
    add_latex(group)
    group.add_argument("--plots", metavar="DIR", help="the paper's figures, as SVG")
    group.add_argument("--json", action="store_true", help="print the summary as data instead of a table")


def _rank(text: str) -> str | int:
    return whole_number(1, 1000)(text) if text[:1].isdigit() and "+" not in text else text


def given_config(args: argparse.Namespace) -> dict[str, Any]:
    """The configuration that preset, file and flags make together, with defaults filled in.

    Raises:
        UsageError: flags that do nothing here.
        ConfigError: the file cannot be read.
    """
    merged: dict[str, Any] = dict(DEFAULTS)
    if args.preset:
        merged.update(PRESETS[args.preset].config)
    in_file = load_config(args.config) if args.config else {}
    merged.update(in_file)
    for key, flag in _FLAGS.items():
        value = getattr(args, flag)
        if value is not None and value is not False:
            merged[key] = value
    if args.preset and args.defense and "defenses" not in in_file:
        merged["defenses"] = _chosen(PRESETS[args.preset].config["defenses"], args.defense)
    if args.payloads:
        others = merged["attacks"] if args.attack or args.preset or args.config else []
        merged["attacks"] = [*_listed(others), *(f"{PREFIX}{path}" for path in args.payloads)]
    _set_saved(merged, args)
    _set_base_url(merged, args)
    merged["models"] = with_settings(_listed(merged["models"]), args)
    _set_certify(merged, args)
    _set_settings(merged, args)
    return merged


def _chosen(entries: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """A preset's entries of these defences, with the settings that they have for each task, and what is not in it."""
    named = {name: [e for e in entries if (e if isinstance(e, str) else e["name"]) == name] for name in names}
    return [entry for name, found in named.items() for entry in found or [name]]


_FLAGS = {
    "data": "data",
    "data_layout": "layout",
    "contexts": "contexts",
    "tasks": "task",
    "limit": "limit",
    "strict": "strict",
    "models": "model",
    "defenses": "defense",
    "attacks": "attack",
    "ranks": "rank",
    "corruption_sizes": "corruption_size",
    "modes": "mode",
    "repeat": "repeat",
    "top_k": "top_k",
    "judge": "judge",
    "metric": "metric",
    "seed": "seed",
    "runs": "runs",
    "probes": "probe",
    "prices": "prices",
}


def _set_saved(merged: dict[str, Any], args: argparse.Namespace) -> None:
    """Each settings file is one more defence, next to those that were chosen, or else to vanilla RAG."""
    if args.settings is None:
        return
    files = [read_settings(path) for path in args.settings]
    chosen = merged["defenses"] if args.defense or args.config or args.preset else [VANILLA.name]
    merged["defenses"] = [*_listed(chosen), *(_entry(saved, args) for saved in files)]
    if args.top_k is None and any(saved.top_k for saved in files):
        merged["top_k"] = list(dict.fromkeys(saved.top_k for saved in files if saved.top_k))


def _entry(saved: SavedSettings, args: argparse.Namespace) -> dict[str, Any]:
    """A settings file as a defence of a configuration."""
    found = saved.under({"group_by": args.group_by, "group_size": args.group_size})
    name, task = found.pop("aggregation"), found.pop("task", None)
    only = {} if task is None else {"tasks": [key for key, value in TASK_OF.items() if value == task]}
    return {"name": name, "label": f"{name} ({Path(saved.path).name})", **found, **only}


def _set_base_url(merged: dict[str, Any], args: argparse.Namespace) -> None:
    if args.base_url is None:
        return
    models, judge = _listed(merged["models"]), merged["judge"]
    if not any(map(_is_served, [*models, judge])):
        raise UsageError(f"--base-url goes with --model {forms_that_take('base_url')}")
    merged["models"] = [_behind(args.base_url, model) for model in models]
    merged["judge"] = _behind(args.base_url, judge)


def _is_served(model: Any) -> bool:
    return isinstance(model, str) and takes(model, "base_url")


def _behind(url: str, model: Any) -> Any:
    return {"name": model, "base_url": url} if _is_served(model) else model


def _set_certify(merged: dict[str, Any], args: argparse.Namespace) -> None:
    more = {"attacks": args.certify_attack, "max_model_calls": args.max_model_calls, "sample": args.sample}
    more = {key: value for key, value in more.items() if value is not None}
    if args.certify is None:
        if more and not merged["certify"]:
            raise UsageError("--certify-attack, --max-model-calls and --sample go with --certify")
        sizes: Any = None
    else:
        sizes = args.certify or [1]
    if sizes is None and not more:
        return
    before = merged["certify"]
    known = dict(before) if isinstance(before, Mapping) else {}
    if not isinstance(before, Mapping) and before not in (None, True, False):
        known = {"corruption_sizes": before}
    merged["certify"] = {**known, **({} if sizes is None else {"corruption_sizes": sizes}), **more}


def _set_settings(merged: dict[str, Any], args: argparse.Namespace) -> None:
    """Give every defence of the right kind the values of the flags."""
    kinds_of = {name: tuple(of_methods) for name, of_methods in thresholds().items()}
    grouping = dict.fromkeys(("group_size", "group_by"), tuple(METHODS))
    for setting, kinds in {**kinds_of, **grouping, **dict.fromkeys(HASTE, ())}.items():
        values = getattr(args, setting)
        if values is None:
            continue
        kinds = kinds or tuple(method.name for method in methods_that("decides_early"))
        entries = [{"name": d} if isinstance(d, str) else d for d in _listed(merged["defenses"])]
        if not any(isinstance(e, Mapping) and e.get("name") in kinds for e in entries):
            flag = "--" + setting.replace("_", "-")
            raise UsageError(f"{flag} does nothing here; it goes with --defense {' or '.join(kinds)}")
        merged["defenses"] = [
            {**e, setting: values} if isinstance(e, Mapping) and e.get("name") in kinds else e for e in entries
        ]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
