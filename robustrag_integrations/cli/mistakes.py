"""What to type instead of an option, a word or a command that is not known."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from robustrag_integrations._util.checks import nearest_of
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.grouping.votes import RULES


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return a question with the name that is near to what was typed; empty if none is."""
    near = nearest_of(typed, list(known), 0.65)
    return f"; did you mean {near}?" if near else ""


def mistake(parser: argparse.ArgumentParser, words: Sequence[str], unknown: Sequence[str]) -> str:
    """Say what is wrong with arguments that a command does not take, and what to type."""
    first = next((word for word in unknown if word.startswith("--")), unknown[0])
    name, _, value = first.partition("=")
    options = {option: action for action in parser._actions for option in action.option_strings}
    before = words[: words.index(first)]
    if not first.startswith("-"):
        last = next((word for word in reversed(before) if word in options), None)
        if last is not None and len(before) - before.index(last) <= 2:  # it stands where a value of that option would
            return f"unexpected {first!r:.60}: {last} takes {'no' if options[last].nargs == 0 else 'one'} value"
        quoted = "; put the question in quotes" if any(a.dest == "question" for a in parser._actions) else ""
        return f"unexpected {first!r:.60}{quoted}"
    plain = name.lstrip("-").replace("-", "_")
    settings = {setting.name for method in METHODS.values() for setting in method.settings} | set(RULES)
    dashed = f"--{plain.replace('_', '-')}"
    if dashed in options:
        return f"there is no {name}; did you mean {dashed}?"
    if plain in settings and "--set" in options:
        if not value:  # argparse may have taken it for something else
            following = words[len(before) + 1 :]
            value = following[0] if following and not following[0].startswith("--") else "VALUE"
        return f"{name} is a setting, not an option: --set {plain}={value}"
    return f"there is no {name:.60}{did_you_mean(name, options)}"
