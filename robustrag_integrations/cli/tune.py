"""`robustrag tune`: chooses settings on data, and writes a file of them that every entry point reads."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.settings import Setting
from robustrag_integrations._util.words import count_of
from robustrag_integrations.cli.arguments import (
    add_model,
    add_model_settings,
    add_setting,
    passages_asked,
    some_text,
    whole_number,
)
from robustrag_integrations.cli.flags import add_field
from robustrag_integrations.cli.models import named_model, with_settings
from robustrag_integrations.cli.output import (
    EXIT_ANSWERED,
    EXIT_FAILURE,
    UsageError,
    complain,
    show,
    show_json,
    terminal_width,
    write_result,
)
from robustrag_integrations.cli.running import add_how, engine_of, watched
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.defenses.settings_file import settings_text
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.run.config import EvalConfig, read_config
from robustrag_integrations.evaluation.score.expected import LARGEST_SIZE
from robustrag_integrations.grouping.passages import ORIGIN, PASSAGE
from robustrag_integrations.grouping.votes import RULES

if TYPE_CHECKING:
    from robustrag_integrations.evaluation.tune.tuning import Tuned, Tuning, Wish

_TASKS = {"qa": "short_answer", "mc": "multiple_choice"}

DESCRIPTION = """\
Choose settings on your data: every combination answers half of the questions, one is
chosen, and the other half, which had no say, tells what it is worth. The settings are
written as YAML that `settings=` in Python, LangChain and LlamaIndex and --settings on the
command line read.
"""

EPILOG = """\
a first run:
  robustrag tune --data questions.jsonl --model openai:my-model --base-url http://localhost:8000/v1
  robustrag tune --data questions.jsonl --estimate         what would be asked, and ask nothing
  robustrag ask "Who won?" --docs news/ --settings settings.yaml

what it costs:
  Each isolated reply is asked once and kept in --cache: another threshold needs a final
  call at most, consensus and voting need none. Another vote rule asks about other groups; settings
  of decoding decode anew. It is all said before the first call. Run the same command again to resume.
  A model that samples is asked anew for every setting, since its replies are not kept.

what is compared:
  accuracy    the share that is right, without an attack
  ecacc k'    expected certified accuracy: the share that is right with a radius of at least k'.
              It takes no further call, and bounds the accuracy over such questions while any
              k' groups are replaced. It is about a data set, never about one answer
  abstained   the share without an answer

the choice (--prefer):
  certified   of the settings whose accuracy is within 1 point, or one question, of the best:
              the most often certified; then the more accurate, the less often silent, the one
              with fewer calls, the larger radius, the one nearest to the defaults
  accuracy    the most accurate; then the most often certified, and so on

what has one vote:
  Without --group-by: origin where every passage names its source, else passage. Compare vote
  rules with care: one attacker with one page is one group by origin and many by passage.

data: as for robustrag eval: demo, or a file of questions with answers and passages. Long
  answers have no expected certified accuracy: compare settings with robustrag eval --judge.

exit codes: 0 done, 1 failure or failed rows, 2 wrong usage, 130 interrupted (the same
  command resumes)
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--data", nargs="+", type=some_text, required=True, metavar="DATA", help="demo, or files")
    parser.add_argument("--task", choices=tuple(_TASKS), help="short answers (default) or multiple choice")
    add_field(parser, EvalConfig, "limit")
    parser.add_argument(
        "--defense",
        nargs="+",
        choices=tuple(METHODS),
        metavar="DEFENSE",
        help=f"one or more of {', '.join(METHODS)}; default: those for the task that any model can run",
    )
    add_model(parser)
    add_model_settings(parser)
    add_field(parser, EvalConfig, "metric")
    _add_swept(parser.add_argument_group("settings to try; several values each"))
    _add_choice(parser.add_argument_group("how it is chosen"))
    add_how(parser.add_argument_group("how it is run"))
    _add_results(parser.add_argument_group("results"))


def _swept() -> dict[str, dict[str, Setting]]:
    """Return the numbers and choices to try by name, each with the settings of that name of all methods."""
    found: dict[str, dict[str, Setting]] = {}
    for method in METHODS.values():
        for setting in method.settings:
            if setting.tries or setting in method.flags:
                found.setdefault(setting.name, {})[method.name] = setting
    return found


def _add_swept(group: Any) -> None:
    for of_methods in _swept().values():
        said = []
        for method, setting in of_methods.items():
            tried = " ".join(map(str, setting.tries or (setting.default,)))
            said.append(f"{method}: {setting.help} (default {tried})")
        add_setting(group, next(iter(of_methods.values())), "; ".join(said), nargs="+")
    add_setting(group, RULES["group_by"], nargs="+")
    add_setting(group, RULES["group_size"], "more than 1 groups by rank, in place of --group-by", nargs="+")
    add_field(group, EvalConfig, "top_k", "--top-k", type=passages_asked, metavar="K")


def _add_choice(group: Any) -> None:
    group.add_argument(
        "--prefer", choices=("certified", "accuracy"), default="certified", help="see below (default certified)"
    )
    group.add_argument(
        "--corruption",
        type=whole_number(1, LARGEST_SIZE),
        default=1,
        metavar="K",
        help="k', what certified accuracy is measured against (default 1)",
    )
    group.add_argument(
        "--seed", type=whole_number(0, 999_999_999), default=0, metavar="N", help="of the split in halves (default 0)"
    )


def _add_results(group: Any) -> None:
    group.add_argument("--estimate", action="store_true", help="say what would be asked, and ask nothing")
    group.add_argument(
        "--write", default="settings.yaml", metavar="FILE", help="the settings file (default settings.yaml)"
    )
    group.add_argument("--overwrite", action="store_true", help="replace a settings file that says something else")
    group.add_argument(
        "--output", default="tune.jsonl", metavar="FILE", help="the rows, as of robustrag eval (default tune.jsonl)"
    )
    group.add_argument("--json", action="store_true", help="print data instead of a table")


def run(args: argparse.Namespace) -> int:
    """Choose the settings, and write them."""
    from robustrag_integrations.evaluation.tune.show import in_words, tuned_table, warned_in_words

    target = _target(args)
    with watched(args.output) as watcher:
        tuning, wish = _tuning(args)
        complain(*_said_before(args, tuning))
        if args.estimate:
            return EXIT_ANSWERED
        with _engine(args) as engine:
            tuned = tuning.run(args.output, engine, watcher)
    if args.json:
        show_json(_as_data(tuned, wish))
    else:
        show(tuned_table(tuned, wish, terminal_width()))
        show("\n> chosen\n")
        show("\n".join(printable(line, 400) for line in in_words(tuned, wish)))
    complain(*warned_in_words(tuned))
    if not tuned.chosen.accuracy.mean:
        raise RobustRAGError(
            f"no settings gave a right answer, so that none were written; see the rows in {args.output}"
        )
    written = _write(args, target, tuned, wish, tuning.task)
    complain(f"rows are in {args.output}, {tuned.made} of them new")
    return written if not tuned.failed else EXIT_FAILURE


def _target(args: argparse.Namespace) -> Path:
    """Return the path of the settings file."""
    target = Path(args.write)
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(f"--write {args.write!r}: name a file in a folder that exists")
    return target


def _tuning(args: argparse.Namespace) -> tuple[Tuning, Wish]:
    """Return the tuning and its objective. Passages with named sources vote by origin, unless options say otherwise."""
    from robustrag_integrations.evaluation.tune.tuning import Tuning, Wish

    wish = Wish(args.prefer, args.corruption, args.seed)
    tuning = Tuning(read_config(mapping_of(args, args.group_by or [PASSAGE])), wish)
    if args.group_by is None and tuning.names_origins and 1 in (args.group_size or [1]):
        tuning = Tuning(read_config(mapping_of(args, [ORIGIN])), wish)
    return tuning, wish


def mapping_of(args: argparse.Namespace, group_by: list[str]) -> dict[str, Any]:
    """Return the configuration of `robustrag eval` that asks all setups."""
    local = named_model(args.model, args.base_url).local
    served = {"base_url": args.base_url} if args.base_url else {}
    task = _TASKS[args.task or "qa"]
    names = args.defense or [m.name for m in METHODS.values() if task in m.tasks and not m.needs_probabilities]
    defenses = [entry for name in names for entry in _entries(args, name, group_by)]
    for name, of_methods in _swept().items():
        if getattr(args, name) is not None and not any(name in entry for entry in defenses):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} does nothing here; it is a setting of --defense {' or '.join(of_methods)}")
    return {
        "data": args.data,
        "tasks": [args.task or "qa"],
        "limit": args.limit,
        "models": with_settings(
            [{"name": args.model, **served, **({"max_context_tokens": 256} if local else {})}], args
        ),
        "defenses": defenses,
        "attacks": [],
        "top_k": args.top_k or [10],
        "metric": args.metric,
    }


def _entries(args: argparse.Namespace, name: str, group_by: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a method with its settings' values, once by key and once by rank where groups have several passages."""
    given = {s.name: value for s in METHODS[name].settings if (value := getattr(args, s.name, None)) is not None}
    tried = {s.name: list(given.get(s.name, s.tries)) for s in METHODS[name].settings}
    swept, sizes = {name: values for name, values in tried.items() if values}, args.group_size or [1]
    if 1 in sizes:
        yield {"name": name, **swept, "group_by": group_by}
    if larger := [size for size in sizes if size > 1]:
        yield {"name": name, **swept, "group_by": [PASSAGE], "group_size": larger}


def _said_before(args: argparse.Namespace, tuning: Tuning) -> list[str]:
    choosing, held = tuning.questions(tuning.choosing), tuning.questions(tuning.held_out)
    return [
        f"{count_of(tuning.setups, 'setting')} on {count_of(choosing, 'question')}, then the chosen one on {held} that "
        "are held out",
        f"at most {tuning.estimate()}; what the cache or {args.output} has is not asked again",
    ]


@contextlib.contextmanager
def _engine(args: argparse.Namespace) -> Iterator[Any]:
    """Open the engine that computes the rows. Setups share replies through the cache; without one, a temporary
    cache serves this run."""
    with contextlib.ExitStack() as stack:
        if args.no_cache:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="robustrag-"))
            args.cache, args.no_cache = folder, False
        yield engine_of(args, True)


def _write(args: argparse.Namespace, target: Path, tuned: Tuned, wish: Wish, task: str) -> int:
    """Write the settings; an existing file with other contents is left as it is."""
    from robustrag_integrations.evaluation.tune.show import comments

    about = [f"data: {', '.join(args.data)} ({task}); model: {args.model}; robustrag {__version__}"]
    text = settings_text(tuned.settings, comments(tuned, wish, about))
    if target.exists() and not args.overwrite and target.read_bytes() != text.encode():
        complain(
            f"{args.write} says something else and was left as it is; run again with --overwrite, or another --write "
            "(nothing is asked again)"
        )
        return EXIT_FAILURE
    write_result("--write", args.write, text)
    complain(f"settings: {args.write}; use it as settings= in Python, or --settings")
    return EXIT_ANSWERED


def _as_data(tuned: Tuned, wish: Wish) -> Mapping[str, Any]:
    return {
        "schema": "robustrag/tune/1",
        "wish": asdict(wish),
        "chosen": asdict(tuned.chosen),
        "held_out": asdict(tuned.held_out),
        "repeats": tuned.repeats,
        "warnings": dict(tuned.warnings),
        "candidates": [asdict(c) for c in tuned.candidates],
        "settings": asdict(tuned.settings),
    }
