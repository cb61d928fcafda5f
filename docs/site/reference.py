"""The reference, written by the code itself: public names, commands, keys of a configuration, attacks and metrics."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import langchain_robustrag
import llamaindex_robustrag
import robustrag_integrations
from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.certification import metrics
from robustrag_integrations.cli import command_parser
from robustrag_integrations.defenses.registry import METHODS, entry_of
from robustrag_integrations.evaluation.attacks import ATTACKS
from robustrag_integrations.evaluation.run import config


def reference_pages() -> dict[str, str]:
    """The pages by their place."""
    return {
        "reference/core.md": _names("The core", robustrag_integrations),
        "reference/langchain.md": _names("LangChain", langchain_robustrag),
        "reference/llamaindex.md": _names("LlamaIndex", llamaindex_robustrag),
        "reference/commands.md": _commands(),
        "reference/configuration.md": _configuration(),
        "reference/reports.md": _reports(),
        "reference/attacks-and-metrics.md": _attacks_and_metrics(),
    }


def _names(title: str, module: ModuleType) -> str:
    """A page of what a package exports."""
    names = [name for name in sorted(module.__all__) if not name.startswith("__")]
    return "\n\n".join([f"# {title}", *(f"::: {module.__name__}.{name}" for name in names)]) + "\n"


def _commands() -> str:
    """The help of every command."""
    parts = ["# Commands", "What `robustrag --help` and the help of each command print."]
    with _columns(100):
        parser = command_parser()
        parts.append(_block(parser.format_help()))
        [commands] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        for name, command in commands.choices.items():
            parts += [f"## robustrag {name}", _block(command.format_help())]
    return "\n\n".join(parts) + "\n"


def _configuration() -> str:
    """The keys of an evaluation's configuration, and the settings of each defence."""
    filled = config.read_config({}).given
    rows = [f"| `{key}` | `{_shown(value)}` |" for key, value in filled.items()]
    parts = [
        "# Configuration of an evaluation",
        "A YAML file for `robustrag eval FILE`. Unknown keys and wrong values are refused, with what is known. "
        "[Evaluation](../guide/evaluation.md) says what the keys do.",
        "## Keys and their defaults\n\n| key | default |\n|---|---|\n" + "\n".join(rows),
        "## Settings of the defences",
    ]
    for name in config.defense_names():
        method = METHODS.get(name)
        meanings = {s.name: (s.help, s.default) for s in method.settings} if method else {}
        known = config.settings_known(name)
        lines = [f"| `{s}` | {_meaning(*meanings[s])} |" if s in meanings else f"| `{s}` | |" for s in known]
        parts.append(
            f"### `{name}`\n\nTasks: {', '.join(entry_of(name).tasks)}.\n\n| setting | |\n|---|---|\n"
            + "\n".join(lines)
        )
    return "\n\n".join(parts) + "\n"


def _reports() -> str:
    """What an answer holds, and an example as JSON."""
    passages = [f"Report {n}: Anna Berg won on Sunday." for n in range(7)] + ["Eve Crook won."]
    model = CallableModel(lambda prompt: "Eve Crook" if "Crook" in prompt and "Berg" not in prompt else "Anna Berg")
    answer = ConsensusAggregation(model, group_by="passage").answer("Who won?", passages)
    return (
        "\n\n".join(
            [
                "# Reports",
                "`answer.to_dict()`, `robustrag ask --json`, LangChain's event and LlamaIndex's metadata hold the "
                "same, as JSON; `RobustAnswer.from_dict` reads it back. Of eight passages, one of which lies:",
                f"```json\n{json.dumps(answer.to_dict(), indent=2, ensure_ascii=False)}\n```",
                "::: robustrag_integrations.answers.answer.RobustAnswer",
                "::: robustrag_integrations.answers.answer.SourceReport",
                "::: robustrag_integrations.answers.citations.Citation",
                "::: robustrag_integrations.certification.result.Certification",
            ]
        )
        + "\n"
    )


def _attacks_and_metrics() -> str:
    """The attacks and metrics that can be named."""
    attacks = [f"| `{name}` | {attack.summary} |" for name, attack in ATTACKS.items()]
    scores = [f"| `{name}` | {_first_line(metric)} |" for name, metric in metrics.METRICS.items()]
    return (
        "\n\n".join(
            [
                "# Attacks and metrics",
                "## Attacks\n\n`robustrag eval --attack NAME`.\n\n| name | |\n|---|---|\n" + "\n".join(attacks),
                "## Metrics\n\n`robustrag eval --set metric=NAME`, or a function of yours as `module:function`.\n\n"
                "| name | |\n|---|---|\n" + "\n".join(scores),
            ]
        )
        + "\n"
    )


def _meaning(text: str, default: Any) -> str:
    return f"{text}; default `{_shown(default)}`" if default is not None else text


def _shown(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False).replace("|", "\\|")


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0].replace("|", "\\|")


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


@contextlib.contextmanager
def _columns(number: int) -> Iterator[None]:
    """Lets argparse write lines of this length, whatever the terminal."""
    before: Mapping[str, str] = dict(os.environ)
    os.environ["COLUMNS"] = str(number)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
