"""Options that commands share, and what is made of them: a model, documents, a defence.

Few settings have a flag; `--set NAME=VALUE` is for all others, by the names that they have in Python. What is typed is
checked before anything is read or loaded, and a mistake ends with exit code 2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.cli.output import EXIT_USAGE, UsageError, complain, step
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, METHODS, Method, default_method, entry_of
from robustrag_integrations.defenses.settings_file import Arguments, load_settings
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.models.providers import NamedModel, check_name, described, forms_that_take, takes
from robustrag_integrations.text.prompts import OPEN_TASKS, Task

if TYPE_CHECKING:
    from robustrag_integrations.corpus.documents import Skipped


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in two lines; argparse would print dozens of lines of options first."""

    def error(self, message: str) -> NoReturn:
        """Exit with the error and a hint."""
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}\n{self.prog}: try: {self.prog} --help\n")


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


def whole_number(smallest: int, largest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers in this range."""

    def read(text: str) -> int:
        # The length is checked first: turning thousands of digits into a number takes time.
        if not (len(text) < 10 and text.isdecimal() and smallest <= int(text) <= largest):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {smallest} to {largest}")
        return int(text)

    return read


def setting(text: str) -> tuple[str, Any]:
    """Return name and value of `NAME=VALUE`. A value is JSON, else values with commas between them, else a text.

    The text of an abstention is one as it stands, whatever is in it.
    """
    name, _, value = text.partition("=")
    if not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not of the form NAME=VALUE, such as alpha=0.3")
    name = name.strip().replace("-", "_")
    return name, valid_text(value) if name == "abstention" else _value(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        parts = text.split(",")
        return [_value(part) for part in parts] if len(parts) > 1 else valid_text(text)


def add_set(parser: Any, about: str) -> None:
    """Add --set."""
    parser.add_argument("--set", action="append", type=setting, default=[], metavar="NAME=VALUE", help=about)


def add_model(parser: Any) -> None:
    """Add --model and --base-url."""
    parser.add_argument("--model", type=model_name, default="bundled", metavar="MODEL", help=described("bundled"))
    add_base_url(parser)


def add_base_url(parser: Any) -> None:
    """Add --base-url."""
    served = forms_that_take("base_url")
    about = f"the server of {served}, such as http://localhost:8000/v1; OPENAI_API_KEY is sent to it if set"
    parser.add_argument("--base-url", metavar="URL", help=about)


def named_model(name: str, base_url: str | None = None, **settings: Any) -> NamedModel:
    """Return what `load()` makes a model of; settings that its kind does not take are left out."""
    try:
        return NamedModel(name, base_url, **{what: value for what, value in settings.items() if takes(name, what)})
    except ValueError as error:
        raise UsageError(str(error).replace("base_url", "--base-url", 1)) from error


def add_answering(parser: argparse.ArgumentParser, defenses: Mapping[str, Method]) -> None:
    """Add the options of a command that answers from documents with one of these defences."""
    add = parser.add_argument
    add("--docs", action="extend", nargs="+", required=True, metavar="PATH", help="files and folders to read")
    about = "read texts of PDF and Markdown files that nobody can see, too; they are left out, with a note"
    add("--hidden-text", action="store_true", help=about)
    listed = "; ".join(f"{method.name}: {method.summary}" for method in defenses.values())
    about = f"default consensus, or the one that takes the settings given. {listed}"
    add("--defense", choices=tuple(defenses), help=about)
    about = (
        "short_answer (default), long_form (instructions and other long answers), or list (all items that there are)"
    )
    add("--task", choices=OPEN_TASKS, help=about)
    add_model(parser)
    add("--top-k", type=whole_number(1, 1000), metavar="K", help="how many sources are asked (default 10)")
    about = "how many passages of one source are read at most (default 2)"
    add("--per-source", type=whole_number(1, 100), default=2, metavar="N", help=about)
    about = "the longest passage, in characters (default 600)"
    add("--chunk-size", type=whole_number(50, 100_000), default=600, metavar="N", help=about)
    about = "what has one vote: origin (a file or page, the default), site, passage, or an entry of the metadata"
    add("--group-by", type=some_text, metavar="G", help=about)
    add("--min-radius", type=whole_number(0, 1000), metavar="N", help="abstain below this radius (default 0)")
    about = "a settings file: the defence, its settings, what one vote is, and top-k; what is typed wins over it"
    add("--settings", metavar="FILE", help=about)
    add_set(
        parser,
        "any other setting of the defence or rule of votes, by its name in Python, such as alpha=0.3, min_support=3, "
        """min_groups=4, abstention="Not in our files.", stop_when_decided=true or 'weights={"a.pdf": 3}'; may be """
        "repeated",
    )
    parser.set_defaults(defenses=tuple(defenses))


def open_methods() -> dict[str, Method]:
    """Return the methods that answer questions without options to choose from."""
    return {name: method for name, method in METHODS.items() if method.tasks != ("multiple_choice",)}


class Answering:
    """What the options of `add_answering` amount to: a defence with its settings; after `load` a model and documents.

    A UsageError says what cannot be used together.
    """

    library: Any
    model: TextModel
    skipped: tuple[Skipped, ...]

    def __init__(self, args: argparse.Namespace, choices: Any = None) -> None:
        self._args = args
        typed = {"task": args.task, "group_by": args.group_by, "min_radius": args.min_radius, **dict(args.set)}
        try:
            saved = None if args.settings is None else load_settings(args.settings)
            self._top_k = args.top_k or (saved and saved.top_k) or 10
            given = Arguments.of(
                typed, aggregation=args.defense, settings=None if saved is None else replace(saved, top_k=None)
            )
            self._settings: dict[str, Any] = {**given.options}
            self._task: Task | None = self._settings.pop("task", None)
            names = [*self._settings, *(["choices"] if choices else [])]
            self.defense = given.aggregation or default_method(self._task, names)
            self.rules = given.rules
            self._check(args.defenses, choices)
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from error

    def _check(self, defenses: tuple[str, ...], choices: Any) -> None:
        method, name = entry_of(self.defense), self.defense
        if name not in defenses:
            raise UsageError(f"--defense {name} is not for this command; use {' or '.join(defenses)}")
        if choices:
            if self._task is not None or not method.takes_choices:
                raise UsageError(f"--choices does not go with --task, nor with --defense {name}")
            self._task = "multiple_choice"
        elif method.tasks == ("multiple_choice",):
            raise UsageError(f"--defense {name} needs the options to vote on: --choices A B C")
        method.settings_of({**self._settings, "task": self._task})
        if name in METHODS:
            method.load().check_rules(self.rules)
        elif idle := self.rules.given.keys() - {"group_by"}:
            raise UsageError(f"{min(idle)} does nothing for --defense {name}; leave it out")
        self._named = named_model(self._args.model, self._args.base_url, max_context_tokens=512)
        if method.needs_probabilities and not self._named.gives_probabilities:
            raise UsageError(
                f"--defense {name} needs token probabilities: give a local model, openai-completions:NAME for a server "
                "that gives them (vLLM, SGLang), or --defense keyword"
            )

    def load(self) -> None:
        """Read and index the documents, and load the model."""
        from robustrag_integrations.corpus import BM25Index, Library, read_documents, split

        args = self._args
        step(f"reading {', '.join(args.docs)}")
        reading = read_documents(args.docs, hidden_text=args.hidden_text)
        self.skipped = reading.skipped
        complain(*(f"skipped: {skipped.reason}" for skipped in reading.skipped))
        chunks = split(reading.documents, args.chunk_size)
        step(f"searching {len(chunks):,} passages of {len(reading.documents):,} documents")
        per_source = None if self.rules.by == PASSAGE else args.per_source
        self.library = Library(BM25Index(chunks), self._top_k, per_source, self.rules.by)
        step(f"loading the model {args.model}")
        self.model = self._named.load()

    def built(self, name: str | None = None) -> Defense:
        """Return the defence around the model; of another name, with its default settings."""
        method = entry_of(name or self.defense)
        if method.needs_probabilities and not isinstance(self.model, DecodingModel):
            raise UsageError(
                f"--defense {method.name} needs token probabilities, which {self.model.description} does not give"
            )
        settings = self._settings if name in (None, self.defense) else {}
        rules = {} if method.name in BASELINES else self.rules.given
        made: Defense = method.build(self.model, task=self._task, **rules, **settings)
        return made
