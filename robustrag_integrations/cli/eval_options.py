"""The options of `robustrag eval`, and the configuration from them: a preset, then a file, then the flags."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustrag_integrations.attacks.families import ATTACKS
from robustrag_integrations.cli.arguments import (
    add_model_settings,
    add_prices,
    add_setting,
    existing,
    passages_asked,
    whole_number,
)
from robustrag_integrations.cli.defending import read_settings, threshold_help, thresholds
from robustrag_integrations.cli.flags import add_field, add_fields, given_fields
from robustrag_integrations.cli.models import with_settings
from robustrag_integrations.cli.output import UsageError
from robustrag_integrations.cli.running import add_how
from robustrag_integrations.defenses.registry import METHODS, VANILLA
from robustrag_integrations.defenses.settings_file import SavedSettings
from robustrag_integrations.evaluation.run.config import (
    DEFAULTS,
    TASK_OF,
    CertifySpec,
    EvalConfig,
    defense_names,
    load_config,
)
from robustrag_integrations.evaluation.run.presets import PRESETS
from robustrag_integrations.grouping.votes import RULES
from robustrag_integrations.models.providers import forms, forms_that_take, takes

_BEFORE = """\
a first run:
  robustrag eval --limit 5 --attack pia poison --rank first last --certify 1
  robustrag eval --preset paper-table1 --data questions.json.gz --limit 20
  robustrag eval study.yaml --output study.jsonl --csv study.csv

a config file (YAML) has the keys that --show-config prints:
  data: [demo, {source: rqa.json.gz, task: mc}]
  models: [bundled, {name: "openai:my-model", base_url: "http://localhost:8000/v1"}]
  defenses: [vanilla, {name: keyword, alpha: [0.2, 0.3], beta: 3}, decoding]
  attacks: [pia, {name: poison, ranks: [first, last], corruption_sizes: [1, 2]}]
  certify: {corruption_sizes: [1, 2], attacks: [injection, modification]}
  top_k: [10]
  metric: contains
  limit: 50
  prices: {input: 2.5, output: 10, cached_input: 1.25}
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
  RAMDocs is read as well.

attacks: {attacks};
  payloads:FILE plants what others have collected, module:function is a custom one. The
  clean run always comes first.
"""

_AFTER = """
rows: --output holds a line of JSON per question, setup and attack. Rows that are there
  are not made again; failed rows are retried. Model calls are kept in --cache as well,
  so that a changed setting asks only what is new. The cache holds responses in plain
  text; only its owner can read it.

exit codes: 0 done, 1 failure or failed rows, 2 wrong usage, 130 interrupted (the same
  command resumes)
"""


_KNOWN = textwrap.fill(" ".join(ATTACKS), 84, subsequent_indent="  ", break_on_hyphens=False)
EPILOG = _BEFORE.replace("{attacks}", _KNOWN) + _AFTER


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options of the command."""
    parser.add_argument("config", nargs="?", type=existing, metavar="CONFIG", help="a YAML file")
    parser.add_argument(
        "--preset", choices=tuple(PRESETS), metavar="NAME", help="a table or figure of the paper, see below"
    )
    parser.add_argument("--show-config", action="store_true", help="print the configuration, and run nothing")
    _add_what(parser.add_argument_group("what is evaluated"))
    _add_settings(parser.add_argument_group("settings of the defences; several values make several setups"))
    certificates = parser.add_argument_group("certificates")
    add_field(certificates, CertifySpec, "corruption_sizes", "--certify", dest="certify", nargs="*", metavar="K",
              help=EvalConfig.model_fields["certify"].description)  # fmt: skip
    add_field(certificates, CertifySpec, "attacks", "--certify-attack", dest="certify_attack")
    add_fields(certificates, CertifySpec, "max_model_calls", "sample")
    add_how(parser.add_argument_group("how it is run"))
    _add_results(parser.add_argument_group("results"))


def _add_what(group: Any) -> None:
    add_fields(group, EvalConfig, "data", "tasks", "limit", "strict")
    add_field(group, EvalConfig, "models", help=", ".join(forms()) + " of a transformers model (default bundled)")
    group.add_argument("--base-url", metavar="URL", help=f"the server of {forms_that_take('base_url')}, of a judge too")
    add_model_settings(group)
    add_field(
        group,
        EvalConfig,
        "defenses",
        choices=defense_names(),
        help=f"one or more of {', '.join(defense_names())}; default: vanilla consensus. no-rag asks without passages",
    )
    group.add_argument(
        "--settings",
        nargs="+",
        metavar="FILE",
        help="settings files; each is one more defence (default beside it: vanilla)",
    )
    add_field(group, EvalConfig, "attacks")
    add_field(group, EvalConfig, "ranks", type=_rank)
    add_fields(group, EvalConfig, "corruption_sizes", "modes", "repeat")
    add_field(group, EvalConfig, "top_k", "--top-k", type=passages_asked, metavar="K")
    add_fields(group, EvalConfig, "judge", "metric", "seed")


def _add_settings(group: Any) -> None:
    for of_methods in thresholds().values():
        add_setting(group, next(iter(of_methods.values())), threshold_help(of_methods), nargs="+")
    for name in ("group_size", "group_by"):
        add_setting(group, RULES[name], nargs="+")


def _add_results(group: Any) -> None:
    group.add_argument(
        "--output", metavar="FILE", help="the rows, as JSON lines (default: name of preset or config, else eval.jsonl)"
    )
    add_prices(group)
    group.add_argument("--csv", metavar="FILE", help="the summary for a spreadsheet")
    group.add_argument("--latex", metavar="FILE", help="the tables for a paper (booktabs), escaped; - prints them")
    group.add_argument("--json", action="store_true", help="print the summary as data instead of a table")


def _rank(text: str) -> str | int:
    return whole_number(1, 1000)(text) if text[:1].isdigit() else text


def given_config(args: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration that preset, file and flags make together, with defaults filled in.

    Raises:
        UsageError: flags that do nothing here.
        ConfigError: the file cannot be read.
    """
    merged: dict[str, Any] = dict(DEFAULTS)
    if args.preset:
        merged.update(PRESETS[args.preset].config)
    in_file = load_config(args.config) if args.config else {}
    merged.update(in_file)
    merged |= given_fields(args, (name for name in DEFAULTS if name != "certify"))
    if args.preset and args.defenses and "defenses" not in in_file:
        merged["defenses"] = _chosen(PRESETS[args.preset].config["defenses"], args.defenses)
    _set_saved(merged, args)
    _set_base_url(merged, args)
    merged["models"] = with_settings(_listed(merged["models"]), args)
    _set_certify(merged, args)
    _set_settings(merged, args)
    return merged


def _chosen(entries: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return a preset's entries of these defences, with their settings for each task; other names stay as they are."""
    named = {name: [e for e in entries if (e if isinstance(e, str) else e["name"]) == name] for name in names}
    return [entry for name, found in named.items() for entry in found or [name]]


def _set_saved(merged: dict[str, Any], args: argparse.Namespace) -> None:
    """Add each settings file as one more defence, next to the chosen ones, or else to vanilla RAG."""
    if args.settings is None:
        return
    files = [read_settings(path) for path in args.settings]
    chosen = merged["defenses"] if args.defenses or args.config or args.preset else [VANILLA.name]
    merged["defenses"] = [*_listed(chosen), *(_entry(saved, args) for saved in files)]
    if args.top_k is None and any(saved.top_k for saved in files):
        merged["top_k"] = list(dict.fromkeys(saved.top_k for saved in files if saved.top_k))


def _entry(saved: SavedSettings, args: argparse.Namespace) -> dict[str, Any]:
    """Return a settings file as a defence of a configuration."""
    typed = {"group_by": args.group_by, "group_size": args.group_size}
    found = saved.under({name: value for name, value in typed.items() if value is not None})
    name, task = saved.aggregation, found.pop("task", None)
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
    for setting, kinds in {**kinds_of, **grouping}.items():
        values = getattr(args, setting)
        if values is None:
            continue
        entries = [{"name": d} if isinstance(d, str) else d for d in _listed(merged["defenses"])]
        if not any(isinstance(e, Mapping) and e.get("name") in kinds for e in entries):
            flag = "--" + setting.replace("_", "-")
            raise UsageError(f"{flag} does nothing here; it goes with --defense {' or '.join(kinds)}")
        merged["defenses"] = [
            {**e, setting: values} if isinstance(e, Mapping) and e.get("name") in kinds else e for e in entries
        ]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
