"""The options of the commands that answer from documents, and the defence, the model and the index made from them.

Flags of settings and vote rules are made from their declarations (`registry.Method.settings`, `votes.RULES`). What is
not typed is None, so that a settings file can fill it in (`fill_in`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from robustrag_integrations._util.settings import Setting
from robustrag_integrations.cli.arguments import add_model, add_setting, existing, whole_number
from robustrag_integrations.cli.models import named_model
from robustrag_integrations.cli.output import Progress, UsageError, complain
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import (
    BASELINES,
    METHODS,
    Method,
    default_method,
    entry_of,
)
from robustrag_integrations.defenses.settings_file import SavedSettings, SettingsError, load_settings
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.prompts import OPEN_TASKS, Task

if TYPE_CHECKING:
    from robustrag_integrations.corpus.documents import Skipped

_NO_FLAGS = ("group_size", "below", "allow_sole_source")  # rules that say nothing to a command with sources


def add_answering(parser: argparse.ArgumentParser, defenses: Mapping[str, Method]) -> None:
    """Add the options of a command that answers from documents with one of these defences."""
    parser.add_argument(
        "--docs", nargs="+", required=True, type=existing, metavar="PATH", help="files and folders to read"
    )
    parser.add_argument(
        "--hidden-text",
        action="store_true",
        help="read texts of PDF and Markdown files that nobody can see, too; they are left out, with a note",
    )
    listed = "; ".join(f"{m.name}: {m.summary}" for m in defenses.values())
    parser.add_argument(
        "--defense",
        choices=tuple(defenses),
        help=f"default consensus, or the one that takes the settings given. {listed}",
    )
    parser.add_argument(
        "--task",
        choices=OPEN_TASKS,
        help="a short answer (default); instructions and other long answers (long_form); or all items that there are "
        "(list). The last two are counted claim by claim: --min-support says how many sources each one takes",
    )
    parser.set_defaults(defenses=tuple(defenses))
    add_settings(parser)
    add_model(parser)
    group = parser.add_argument_group("retrieval and votes")
    group.add_argument(
        "--top-k",
        type=whole_number(1, 1000),
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
        "--chunk-size",
        type=whole_number(50, 100_000),
        default=600,
        metavar="N",
        help="the longest passage, in characters (default 600)",
    )
    for name, rule in RULES.items():
        if name not in _NO_FLAGS:
            add_setting(group, rule)
    add_thresholds(parser)
    parser.add_argument(
        "--accept-sampling",
        action="store_true",
        help="you know that the model may answer otherwise another time: do not warn of it; what holds of this run is "
        "still said",
    )


def open_methods() -> dict[str, Method]:
    """Return the methods that answer questions without options to choose from."""
    return {name: method for name, method in METHODS.items() if method.tasks != ("multiple_choice",)}


def add_settings(parser: Any) -> None:
    """Add --settings."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="a settings file: the defence, its settings, what one vote is, and top-k; what is typed wins over it",
    )


def thresholds() -> dict[str, dict[str, Setting]]:
    """Return every threshold and choice by name, each with the setting of every method that has one of this name."""
    found: dict[str, dict[str, Setting]] = {}
    for method in (*METHODS.values(), *BASELINES.values()):
        for setting in method.settings:
            if not (setting.threshold or setting.values or setting.is_function):
                continue
            found.setdefault(setting.name, {})[method.name] = setting
    return found


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    """Add an option for every threshold and choice: --alpha, --beta, --gamma, --eta, --cut-replies, ..."""
    group = parser.add_argument_group("thresholds and settings of the defences")
    for of_methods in thresholds().values():
        add_setting(group, next(iter(of_methods.values())), threshold_help(of_methods))


def threshold_help(of_methods: Mapping[str, Setting]) -> str:
    """Return the `--help` text of a threshold."""
    first = next(iter(of_methods.values()))
    return f"{', '.join(of_methods)}: {first.help} ({first.default_in_words or 'default: none'})"


def read_settings(path: str) -> SavedSettings:
    """Return the settings in a file.

    Raises:
        UsageError: it cannot be used.
    """
    try:
        return load_settings(path)
    except SettingsError as error:
        raise UsageError(f"--settings {error}") from error


def fill_in(args: argparse.Namespace) -> None:
    """Fill in what was not typed: from the file of `--settings`, if any; and the defence that takes what is given.

    Raises:
        UsageError: the file cannot be used, or is for another defence than the one that was typed.
    """
    if args.settings is not None:
        saved = read_settings(args.settings)
        if args.defense not in (None, saved.aggregation):
            raise UsageError(
                f"--settings {saved.path} is for --defense {saved.aggregation}, not {args.defense}; leave one out"
            )
        typed = _given(args, ("top_k", *RULES, *(s.name for s in METHODS[saved.aggregation].settings)))
        for name, value in {"top_k": saved.top_k, "defense": saved.aggregation, **saved.under(typed)}.items():
            setattr(args, name, value)
    if args.defense is None:
        names = [*_given(args, thresholds()), *(["choices"] if getattr(args, "choices", None) else [])]
        args.defense = default_method(getattr(args, "task", None), names)


def check_defense(args: argparse.Namespace) -> None:
    """Check that the defence does the task, takes the settings and counts votes in this way, before anything is read.

    Raises:
        UsageError: the message names the option and the fix.
    """
    name, given = args.defense, given_settings(args)
    for option, of_methods in thresholds().items():
        if getattr(args, option) is not None and name not in of_methods:
            raise UsageError(f"--{option.replace('_', '-')} does nothing for --defense {name}; leave it out")
    if name not in getattr(args, "defenses", (name,)):  # of a settings file, or meant by another option
        raise UsageError(f"--defense {name} is not for this command; use {' or '.join(args.defenses)}")
    rules = rules_of(args)
    if name in BASELINES and (idle := rules.keys() - {"group_by"}):
        raise UsageError(f"--{min(idle).replace('_', '-')} does nothing for --defense {name}; leave it out")
    if name in METHODS and METHODS[name].needs_probabilities and args.model.startswith("openai:"):
        raise UsageError(
            f"--defense {name} needs token probabilities: give a local model, openai-completions:NAME for a server "
            "that gives them (vLLM, SGLang), or --defense keyword"
        )
    try:
        entry_of(name).settings_of({**given, **_given(args, ("task",))})
        if name in METHODS and rules:
            METHODS[name].load().check_rules(VoteRules(**rules))
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def given_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the defence that were typed, or stand in a settings file."""
    return _given(args, (s.name for s in entry_of(args.defense).settings))


def rules_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the vote rules that were typed, or stand in a settings file."""
    return _given(args, RULES)


def _given(args: argparse.Namespace, names: Any) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(args, name, None)) is not None}


def built_defense(args: argparse.Namespace, name: str, model: TextModel, task: Task) -> Defense:
    """Build the defence of this name with the given settings and, unless it is a baseline, vote rules.

    Raises:
        UsageError: the model does not give what it needs.
    """
    method = entry_of(name)
    if method.needs_probabilities and not isinstance(model, DecodingModel):
        raise UsageError(f"--defense {name} needs token probabilities, which {model.description} does not give")
    settings = given_settings(args) if name == args.defense else {}
    rules = {} if name in BASELINES else rules_of(args)
    made: Defense = method.build(model, task=task, **rules, **settings)
    made.accept_sampling = args.accept_sampling
    return made


class Documents:
    """The documents of --docs, indexed as a `library`, and the `model` of --model.

    Args:
        args: of a command with `add_answering`.
        progress: shows what is done.

    Raises:
        CorpusError: a path or a named file cannot be read, or there is no text at all.
        UsageError: the model cannot be used.
        ModelError: the model cannot be loaded.
        ImportError: an extra is missing.
    """

    def __init__(self, args: argparse.Namespace, progress: Progress) -> None:
        from robustrag_integrations.corpus import BM25Index, Library, read_documents, split

        progress.step(f"reading {', '.join(args.docs)}")
        reading = read_documents(
            args.docs,
            hidden_text=args.hidden_text,
            on_file=lambda done, total: progress.count("files read", done, total),
        )
        self.skipped: tuple[Skipped, ...] = reading.skipped
        complain(*(f"skipped: {skipped.reason}" for skipped in reading.skipped))
        chunks = split(reading.documents, args.chunk_size)
        progress.step(f"searching {len(chunks):,} passages of {len(reading.documents):,} documents")
        group_by = args.group_by or ORIGIN
        per_source = None if group_by == PASSAGE else args.per_source
        self.library = Library(BM25Index(chunks), args.top_k or 10, per_source, group_by)
        progress.step(f"loading the model {args.model}")
        self.model = named_model(args.model, args.base_url).load()
