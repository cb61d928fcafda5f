"""Options that commands share, and what is made of them: a model, documents, a defence.

Few settings have a flag; `--set NAME=VALUE` is for all others, by the names that they have in Python. What is typed is
checked before anything is read or loaded, and a mistake ends with exit code 2.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from robustrag_integrations._util.checks import nearest_of
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations._util.words import count_of
from robustrag_integrations.cli.output import EXIT_USAGE, UsageError, complain, working
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import (
    BASELINES,
    METHODS,
    Method,
    default_method,
    entry_of,
    rules_and_settings,
)
from robustrag_integrations.grouping.passages import PASSAGE
from robustrag_integrations.grouping.votes import RULES
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.models.providers import NamedModel, described, forms_that_take, takes
from robustrag_integrations.text.prompts import OPEN_TASKS, Task

if TYPE_CHECKING:
    from robustrag_integrations.corpus.documents import Skipped
    from robustrag_integrations.corpus.retrieval import Index, Library

MOST_SKIPPED = 8  # files that are named


class Parser(argparse.ArgumentParser):
    """A parser whose errors have two lines, and whose help is short: `--help-all` shows every option.

    Of a help text, the lines behind the first are for `--help-all`.
    """

    basic: frozenset[str] = frozenset()  # what options `--help` shows; empty: all of them
    details = ""  # what `--help-all` says besides

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show every option")

    def error(self, message: str) -> NoReturn:
        """Exit with the error and a hint."""
        if message.endswith("required: QUESTION"):
            message += "; put it before --docs, which takes all that follows"
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}\n{self.prog}: try: {self.prog} --help\n")

    def format_help(self, *, everything: bool = False) -> str:
        """Return the help text: what is basic, or everything."""
        before = [(action, action.help) for action in self._actions]
        short = bool(self.basic) and not everything
        for action, text in before:
            action.help = (text or "").replace("\n", " ") if everything else (text or "").partition("\n")[0]
            if short and action.dest not in {*self.basic, "help", "help_all"}:
                action.help = argparse.SUPPRESS
        epilog, usage = self.epilog, self.usage
        needed = [self._get_formatter()._format_args(a, a.dest.upper()) for a in self._actions if not a.option_strings]
        needed += [f"{a.option_strings[0]} {a.metavar} ..." for a in self._actions if a.option_strings and a.required]
        try:
            if short:
                self.usage = " ".join(["%(prog)s", *needed, "[options]"])
            self.epilog = "\n\n".join(filter(None, [self.details if everything else "", epilog]))
            return super().format_help()
        finally:
            self.epilog, self.usage = epilog, usage
            for action, text in before:
                action.help = text


class _HelpAll(argparse.Action):
    def __call__(self, parser: Any, *args: Any) -> None:
        print(parser.format_help(everything=True), end="")
        parser.exit()


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


def some_text(text: str) -> str:
    """Return a text that is not empty; undecodable bytes become U+FFFD."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the text is empty; write something")
    return valid_text(text)


def model_name(text: str) -> str:
    """Return a model's name, as listed in `PROVIDERS`."""
    try:
        return NamedModel(text).name
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def embedding_name(text: str) -> str:
    """Return an embedding model's name, if it has one."""
    if not text.removeprefix("openai:").strip():
        raise argparse.ArgumentTypeError(f"{text!r} must be a sentence-transformers model or openai:NAME")
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
    about = "bundled (default), openai:NAME, python:MODULE:FUNCTION, or a folder\n" + described("bundled")
    parser.add_argument("--model", type=model_name, default="bundled", metavar="MODEL", help=about)
    add_base_url(parser)


def add_base_url(parser: Any) -> None:
    """Add --base-url."""
    served = forms_that_take("base_url").removeprefix("openai:NAME or ")
    about = "the server of openai:NAME\n"
    about += f"or {served}, such as http://localhost:8000/v1; OPENAI_API_KEY is sent to it if set"
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
    add_docs(parser)
    listed = "; ".join(f"{method.name}: {method.summary}" for method in defenses.values())
    about = f"default consensus, or the one that takes the settings given\n{listed}"
    add("--method", choices=tuple(defenses), help=about)
    about = "short_answer (default), long_form (instructions), list (all items)"
    add("--task", choices=OPEN_TASKS, metavar="TASK", help=about)
    add_model(parser)
    add("--top-k", type=whole_number(1, 1000), default=10, metavar="K", help="how many sources are asked (default 10)")
    about = "how many passages of one source are read at most (default 2)"
    add("--per-source", type=whole_number(1, 100), default=2, metavar="N", help=about)
    about = "what has one vote: origin (a file or page, the default), site, passage, or an entry of the metadata"
    add("--group-by", type=some_text, metavar="G", help=about)
    add("--min-radius", type=whole_number(0, 1000), metavar="N", help="no answer below this radius (default 0)")
    add_set(
        parser,
        "any other setting, such as alpha=0.3\n(may be repeated) of the defence or rule of votes, by its Python name: "
        """min_support=3, min_sources=4, abstention="Not in our files.", stop_when_decided=true""",
    )
    parser.set_defaults(methods=tuple(defenses))


def add_docs(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is read, and how passages are found."""
    add = parser.add_argument
    about = "files and folders: .txt .md .html .docx .pdf .csv .xlsx .jsonl"
    add("--docs", action="extend", nargs="+", metavar="PATH", default=[], help=about)
    about = "files and folders that only people write whom you trust\nread together, as in plain RAG; --docs are "
    about += "asked one by one, and only where these do not hold the answer, so that nothing there changes it"
    add("--trusted", action="extend", nargs="+", metavar="PATH", default=[], help=about)
    about = "read hidden text of files, too; it is left out, with a note"
    add("--hidden-text", action="store_true", help=about)
    about = "find passages by meaning, too\nwith a sentence-transformers model (its folder or name), or "
    about += "openai:NAME behind a server; its ranks are fused with those by words"
    add("--embedding", type=embedding_name, metavar="MODEL", help=about)
    add("--embedding-url", metavar="URL", help="the server of --embedding openai:NAME (default --base-url)")
    about = "the longest passage, in characters (default 600)"
    add("--chunk-size", type=whole_number(50, 100_000), default=600, metavar="N", help=about)


def check_paths(args: argparse.Namespace) -> None:
    """Raise UsageError without documents, or where those that anybody may write lie among the trusted ones."""
    if not args.docs and not args.trusted:
        raise UsageError("name what to read: --docs PATH, or --trusted PATH for what only people write whom you trust")
    shelves = [(path, Path(path).resolve()) for path in args.trusted]
    for docs in args.docs:
        here = Path(docs).resolve()
        for path, shelf in shelves:
            if shelf == here or shelf in here.parents:
                raise UsageError(
                    f"--docs {docs} lies in --trusted {path}: whoever writes there would be trusted. Name the trusted "
                    "files and folders without it"
                )


def indexes_of(args: argparse.Namespace) -> tuple[Index, Index | None, tuple[Skipped, ...]]:
    """Read and index what is named by --docs, and in an index of its own by --trusted; what is skipped is said."""
    from robustrag_integrations.corpus import BM25Index
    from robustrag_integrations.corpus.documents import Skipped

    if not args.trusted:
        index, skipped = _index_of(args, args.docs)
        return index, None, skipped
    trusted, skipped = _index_of(args, args.trusted)
    try:
        index, more = _index_of(args, args.docs) if args.docs else (BM25Index([]), ())
    except RobustRAGError as error:  # what others write there must not stop a trusted answer
        if not all(map(os.path.lexists, args.docs)):
            raise
        complain(f"left out: all of --docs ({error})")
        index, more = BM25Index([]), (Skipped(", ".join(args.docs), str(error)),)
    return index, trusted, (*skipped, *more)


def _index_of(args: argparse.Namespace, paths: Sequence[str]) -> tuple[Index, tuple[Skipped, ...]]:
    from robustrag_integrations.corpus import BM25Index, HybridIndex, read_documents, split

    with working(f"reading {', '.join(paths)}"):
        reading = read_documents(paths, hidden_text=args.hidden_text)
        chunks = split(reading.documents, args.chunk_size)
    first = sorted(reading.skipped, key=lambda skipped: not skipped.whole)[:MOST_SKIPPED]
    complain(*(f"{'skipped' if skipped.whole else 'left out'}: {skipped.reason}" for skipped in first))
    if len(reading.skipped) > MOST_SKIPPED:
        complain(f"skipped: and {len(reading.skipped) - MOST_SKIPPED:,} more")
    if args.embedding is None:
        return BM25Index(chunks), reading.skipped
    from robustrag_integrations.models.embedding import embedding_of

    with working(f"loading the embedding model {args.embedding}"):
        embedding = embedding_of(args.embedding, args.embedding_url or args.base_url)
    with working(f"embedding {count_of(len(chunks), 'passage')}"):
        return HybridIndex(chunks, embedding), reading.skipped


def open_methods() -> dict[str, Method]:
    """Return the methods that answer questions without options to choose from."""
    return {name: method for name, method in METHODS.items() if method.tasks != ("multiple_choice",)}


class Answering:
    """What the options of `add_answering` amount to: a defence with its settings; after `load` a model and documents.

    A UsageError says what cannot be used together.
    """

    task: Task | None
    library: Library
    model: TextModel
    skipped: tuple[Skipped, ...]

    def __init__(self, args: argparse.Namespace, choices: Any = None) -> None:
        self._args = args
        check_paths(args)
        typed = {"task": args.task, "group_by": args.group_by, "min_radius": args.min_radius, **dict(args.set)}
        try:
            self.rules, self._settings = rules_and_settings(typed)
            self.task = self._settings.pop("task", None)
            self.method = args.method or default_method(self.task, choices)
            self._check(args.methods, choices)
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from error

    def _check(self, defenses: tuple[str, ...], choices: Any) -> None:
        method, name = entry_of(self.method), self.method
        if name not in defenses:
            raise UsageError(f"--method {name} is not for this command; use {' or '.join(defenses)}")
        if choices:
            if self.task is not None or not method.takes_choices:
                raise UsageError(f"--choices does not go with --task, nor with --method {name}")
            self.task = "multiple_choice"
        elif method.tasks == ("multiple_choice",):
            raise UsageError(f"--method {name} needs the options to vote on: --choices A B C")
        method.settings_of({**self._settings, "task": self.task})
        if name in METHODS:
            method.load().check_rules(self.rules)
        elif idle := self.rules.given.keys() - {"group_by"}:
            raise UsageError(f"{min(idle)} does nothing for --method {name}; leave it out")
        if self._args.embedding_url and not str(self._args.embedding).startswith("openai:"):
            raise UsageError("--embedding-url goes with --embedding openai:NAME")
        self._named = named_model(self._args.model, self._args.base_url, max_context_tokens=512)
        if method.needs_probabilities and not self._named.gives_probabilities:
            raise UsageError(
                f"--method {name} needs token probabilities: give a local model, openai-completions:NAME for a server "
                "that gives them (vLLM, SGLang), or --method keyword"
            )

    def read(self) -> None:
        """Read and index the documents."""
        if self._args.model == "bundled":
            complain(
                "note: the bundled reader knows the small world of `robustrag demo`, and will often not answer from "
                "your files: name a model of yours, --model FOLDER (of a transformers model) or --model openai:NAME "
                "--base-url http://localhost:8000/v1 (any server with OpenAI's interface, such as vLLM)"
            )
        from robustrag_integrations.corpus import Library

        index, trusted, self.skipped = indexes_of(self._args)
        per_source = None if self.rules.by == PASSAGE else self._args.per_source
        self.library = Library(index, self._args.top_k, per_source, self.rules.by, trusted)

    def load(self) -> None:
        """Load the model."""
        with working(f"loading the model {self._args.model}"):
            self.model = self._named.load()
        if self.model.numerics.get("dtype") == "bfloat16":
            complain(f"{self._args.model}: weights in bfloat16, half the memory of float32")

    def built(self, name: str | None = None) -> Defense:
        """Return the defence around the model; of another name, with its default settings."""
        method = entry_of(name or self.method)
        if method.needs_probabilities and not isinstance(self.model, DecodingModel):
            raise UsageError(
                f"--method {method.name} needs token probabilities, which {self.model.description} does not give"
            )
        settings = self._settings if name in (None, self.method) else {}
        if self.library.trusted is not None and method.load().isolates:  # a search by words may find none
            settings = {"when_empty": "ask_others", **settings}
        rules = {} if method.name in BASELINES else self.rules.given
        made: Defense = method.build(self.model, task=self.task, **rules, **settings)
        return made
