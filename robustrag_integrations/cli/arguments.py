"""Arguments that several commands share, checked as they are read: a wrong one ends with exit code 2."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from robustrag_integrations._util.checks import nearest_of
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.settings import Setting
from robustrag_integrations.cli.output import EXIT_USAGE
from robustrag_integrations.models.providers import DTYPES, check_name, described, forms_that_take

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Parser(argparse.ArgumentParser):
    """A parser that reports an unknown option first, with the nearest known one.

    argparse alone reads `--limt 5` as an unknown option and a file called 5, and complains about the file.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Raise a usage error for an unknown option; otherwise do as argparse does."""
        known = [*self._option_string_actions]
        for text in args or ():
            if text == "--" or (self._subparsers is not None and not text.startswith("-")):
                break  # the arguments after a command belong to its own parser
            if not _is_option(text, known):
                name = text.split("=")[0]
                near = nearest_of(name, known)
                hint = f"; did you mean {near}?" if near else f"; {self.prog} --help lists them"
                self.error(f"there is no option {printable(name, 60)}{hint}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with the error and a hint; argparse would print dozens of lines of options first."""
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}\n{self.prog}: try: {self.prog} --help\n")


def _is_option(text: str, known: Sequence[str]) -> bool:
    """True if argparse can make sense of this: an option, the beginning of one, or a value."""
    if len(text) < 2 or not text.startswith("-") or " " in text or _NUMBER.match(text):
        return True
    name = text.split("=")[0]
    joined = not text.startswith("--") and text[:2] in known  # -oFILE
    return joined or any(option.startswith(name) for option in known)


def some_text(text: str) -> str:
    """Return a text that is not empty; undecodable bytes become U+FFFD."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the text is empty; write something")
    return valid_text(text)


def model_name(text: str) -> str:
    """Return a model's name, as listed in `PROVIDERS`."""
    if problem := check_name(text):
        raise argparse.ArgumentTypeError(problem)
    return text


def existing(path: str) -> str:
    """Return a path that exists."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise argparse.ArgumentTypeError(f"cannot open {path!r}: {reason}") from error
    return path


def whole_number(smallest: int, largest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers in this range."""

    def read(text: str) -> int:
        # The length is checked first: turning thousands of digits into a number takes time.
        if not (len(text) < 10 and text.isdecimal() and smallest <= int(text) <= largest):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {smallest} to {largest}")
        return int(text)

    return read


def passages_asked(text: str) -> int | str:
    """Parse a number of passages, or `all`."""
    return text if text == "all" else whole_number(1, 1000)(text)


class Given(argparse.Action):
    """Stores a typed value. A list typed in several parts is joined, where argparse keeps only the last part."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Set the value, or add to it."""
        before = getattr(namespace, self.dest, None)
        if isinstance(values, list) and isinstance(before, list) and before is not self.default:
            values = [*before, *values]
        setattr(namespace, self.dest, values)


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) < 10 else valid_text(text)


class Named(argparse.Action):
    """Stores NAME=VALUE pairs as a mapping, and a single word as it is; a name may hold `=` itself."""

    read = staticmethod(_number_or_text)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Set the word, or add to the mapping."""
        values = values.split(",") if isinstance(values, str) else values
        before = getattr(namespace, self.dest)
        is_word = len(values) == 1 and "=" not in values[0]
        if before is not None and (is_word or not isinstance(before, dict)):
            raise argparse.ArgumentError(self, f"{values[0][:60]!r} comes beside another value; give one, or pairs")
        if is_word:
            setattr(namespace, self.dest, self.read(values[0]))
            return
        found = dict(before or {})
        for text in values:
            name, _, value = text.rpartition("=")
            if not name.strip() or not value.strip():
                raise argparse.ArgumentError(self, f"{text[:60]!r} is not of the form NAME=VALUE, such as wiki/=3")
            if found.setdefault(name, self.read(value)) != self.read(value):
                raise argparse.ArgumentError(self, f"{name[:60]!r} is given twice; name it once")
        setattr(namespace, self.dest, found)


class Labels(Named):
    """Stores NAME=LABEL pairs; labels are words, though they be digits."""

    read = staticmethod(valid_text)


def add_setting(group: Any, setting: Setting, about: str | None = None, **more: Any) -> None:
    """Add the flag of a declared setting; one that is not typed is None.

    Args:
        group: the parser, or a group of its arguments.
        setting: its declaration.
        about: its help; None for the declaration's.
        more: for argparse, in place of what follows from the declaration.
    """
    default = f" ({setting.default_in_words})" if setting.default_in_words else ""
    given: dict[str, Any] = {"dest": setting.name, "default": None, "help": about or f"{setting.help}{default}"}
    if setting.kind is bool:
        given["action"] = "store_true"
    elif setting.is_mapping and setting.default is not None:  # a number, or one for each name
        given |= {"action": Named, "type": some_text, "metavar": "N|NAME=N,..."}
    elif setting.is_mapping:
        action = Labels if setting.name == "tiers" else Named
        given |= {"action": action, "nargs": "+", "type": some_text, "metavar": "NAME=VALUE"}
    else:
        given |= value_of(setting)
    group.add_argument(f"--{setting.name.replace('_', '-')}", **{**given, **more})


def value_of(setting: Setting) -> dict[str, Any]:
    """Return the type of a setting's flag, as arguments of `add_argument`."""
    if setting.is_function:
        return {"type": str, "metavar": "MODULE:FUNCTION"}
    if setting.values:
        return {"choices": setting.values}
    return {"type": setting.kind if setting.is_number else some_text, "metavar": setting.name[0].upper()}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add --model and --base-url."""
    parser.add_argument(
        "--model",
        type=model_name,
        default="bundled",
        metavar="MODEL",
        help=described("bundled"),
    )
    add_base_url(parser)


def add_base_url(parser: argparse.ArgumentParser) -> None:
    """Add --base-url."""
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help=f"the server for {forms_that_take('base_url')}, such as http://localhost:8000/v1; OPENAI_API_KEY is "
        "sent to it if set",
    )


def add_model_settings(group: Any) -> None:
    """Add the options of running a model; `models.with_settings` applies them to models."""
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        metavar="DTYPE",
        help=f"what a model in this process computes in: {', '.join(DTYPES)} (default: float32 on a CPU, else auto)",
    )
    group.add_argument(
        "--max-new-tokens",
        type=whole_number(1, 1_000_000),
        metavar="N",
        help=f"the longest reply of {forms_that_take('max_new_tokens')}",
    )
    group.add_argument(
        "--max-context-tokens",
        type=whole_number(1, 10_000_000),
        metavar="N",
        help=f"how much of a group {forms_that_take('max_context_tokens')} reads; longer passages are cut",
    )


def add_prices(parser: Any) -> None:
    """Add --prices, a mapping as `usage.prices_of` takes it."""
    parser.add_argument(
        "--prices",
        type=_prices,
        metavar="IN,OUT[,CACHED]",
        help="prices per million tokens of prompts, replies and prompts read from a cache (default: as other prompts), "
        "in a currency of yours: say what answers cost",
    )


def _prices(text: str) -> dict[str, float]:
    from robustrag_integrations.answers.usage import prices_of

    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
        if not 2 <= len(numbers) <= 3:
            raise ValueError(f"{len(numbers)} given")
        found = dict(zip(("input", "output", "cached_input"), numbers, strict=False))
        prices_of(found)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} must be two or three prices, such as 2.5,10: {error}") from None
    return found
