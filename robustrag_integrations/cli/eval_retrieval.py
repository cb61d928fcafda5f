"""`robustrag eval --retrieve`: how many of the top k an attacker owns who plants documents into a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations.cli.arguments import some_text, whole_number
from robustrag_integrations.cli.exits import EXIT_ANSWERED, EXIT_FAILURE, UsageError
from robustrag_integrations.cli.exporting import write_exports, write_result
from robustrag_integrations.cli.output import complain, show, show_json, terminal_width
from robustrag_integrations.cli.running import Bar, Interrupted, run_evaluation
from robustrag_integrations.defenses.registry import METHODS

_FLAGS = {
    "retriever": "retrievers",
    "plant": "plant",
    "one_vote": "rules",
    "sites": "sites",
    "per_source": "per_source",
    "corpus": "corpus",
    "chunk_size": "chunk_size",
}

EPILOG = """\
what an attacker who plants documents gets (--retrieve):
  robustrag eval --retrieve --limit 10
  robustrag eval --retrieve --certify 1 2 3 --defense keyword --limit 10 --plots figures/
  robustrag eval --retrieve --data questions.jsonl --corpus wiki/ --plant 1 5 10 --sites 10
  robustrag eval --retrieve --retriever bm25 my_retrievers.py:embedding --per-source 1
  The attacks are planted into a corpus (of demo: its world; of other data: --corpus, else
  all passages of its questions) as m documents, and have to be retrieved. rho(m) is how
  many votes among the retrieved hold a planted text: it is measured with these texts and
  this retriever, and is no bound. With --certify the clean answers are certified as well,
  for each kind of vote, and cacc is what stays certified: at k' = the planted passages
  among the retrieved, question by question.
  What one vote is (--one-vote): passage, origin (page or file), site (domain), or an entry
  of the metadata. Each planted document is a page; --sites says on how many sites.
  --retriever names bm25, or module:function: an embedding (of LangChain or LlamaIndex), or
  a function from a list of passages (text, id, source, metadata) to a retriever:
    def mine(passages):
        store = InMemoryVectorStore(my_embedding)
        store.add_texts([p.text for p in passages], [dict(p.metadata) for p in passages])
        return store.as_retriever(search_kwargs={"k": 10})
  It is called again for every corpus with planted documents: cache your embeddings. Rows
  are in FILE.retrieval.jsonl beside --output; robustrag report shows both.
"""


def add_retrieval(group: Any) -> None:
    """Add the options; all but the first go with `--retrieve`."""
    group.add_argument("--retrieve", action="store_true", help="plant the attacks into a corpus, see below")
    group.add_argument(
        "--retriever", nargs="+", type=some_text, metavar="NAME", help="bm25 (default), or module:function"
    )
    group.add_argument(
        "--plant",
        nargs="+",
        type=whole_number(1, 1000),
        metavar="M",
        help="how many documents are planted; each number is measured (default 1 to 10)",
    )
    group.add_argument(
        "--one-vote",
        nargs="+",
        type=some_text,
        metavar="RULE",
        help="what has one vote: passage, origin, site (default: these three), or an entry of the metadata",
    )
    group.add_argument(
        "--sites",
        type=whole_number(1, 1000),
        metavar="N",
        help="on how many sites the planted documents stand (default 1)",
    )
    group.add_argument(
        "--per-source",
        type=whole_number(1, 100),
        metavar="N",
        help="retrieve top-k votes with at most N passages each, as DiverseRetriever does; default: the plain top k",
    )
    group.add_argument(
        "--corpus", nargs="+", type=some_text, metavar="PATH", help="files, folders, or module:function giving passages"
    )
    group.add_argument(
        "--chunk-size",
        type=whole_number(50, 100_000),
        metavar="N",
        help="the longest passage, in characters (default 600)",
    )


def set_retrieval(merged: dict[str, Any], args: argparse.Namespace) -> None:
    """Put the flags into the configuration.

    Raises:
        UsageError: flags that do nothing without `--retrieve`.
    """
    before = merged.get("retrieve")
    more = {key: getattr(args, flag) for flag, key in _FLAGS.items() if getattr(args, flag) is not None}
    if not args.retrieve and not before:
        if more:
            flag = next(f for f, key in _FLAGS.items() if key in more).replace("_", "-")
            raise UsageError(f"--{flag} goes with --retrieve")
        return
    known = dict(before) if isinstance(before, Mapping) else {}
    merged["retrieve"] = {**known, **more} or True


def run_retrieval(args: argparse.Namespace, mapping: Mapping[str, Any], output: str, *, cached: bool) -> int:
    """Measure, certify where that is asked for, and print the summary."""
    from robustrag_integrations.evaluation.data.datasets import DatasetError
    from robustrag_integrations.evaluation.retrieval.measure import RetrievalError, measure_retrieval
    from robustrag_integrations.evaluation.retrieval.questions import write_questions
    from robustrag_integrations.evaluation.retrieval.rows import retrieval_file
    from robustrag_integrations.evaluation.retrieval.spec import RetrievalSpec
    from robustrag_integrations.evaluation.retrieval.summary import summarise_retrieval
    from robustrag_integrations.evaluation.run.config import ConfigError, read_config
    from robustrag_integrations.evaluation.run.journal import JournalError

    target = str(retrieval_file(output))
    try:
        config = read_config(mapping)
        certified: list[Mapping[str, Any]] = []
        failed = 0
        rules = (config.retrieve or RetrievalSpec()).certified_rules if config.certify is not None else ()
        for rule in rules:
            asked = {
                **mapping,
                "data": write_questions(config, f"{output}.questions", rule),
                "attacks": [],
                "defenses": _by_rule(mapping["defenses"], rule),
            }
            complain(f"certifying clean answers, one vote: {rule}")
            done = run_evaluation(args, asked, output, cached=cached)
            certified, failed = [*certified, *done.rows], failed + done.failed
        watcher = Bar(target)
        try:
            measured = measure_retrieval(config, output=target, watcher=watcher)
        except KeyboardInterrupt as error:
            raise Interrupted(watcher.standing()) from error
        finally:
            watcher.close()
    except (ConfigError, DatasetError, JournalError, RetrievalError) as error:
        raise UsageError(str(error)) from error
    _report(args, summarise_retrieval(measured.rows, certified))
    complain(f"{len(measured.rows)} rows are in {target}, {measured.made} of them new")
    for reason in dict.fromkeys(row["error"]["message"] for row in measured.rows if row["error"]):
        complain(f"failed: {reason}")
    if config.certify is None:
        complain("note: add --certify 1 2 3 to see next to rho what stays certified (cacc)")
    if failed or measured.failed:
        complain(f"{failed + measured.failed} rows failed; run the same command again to retry them")
        return EXIT_FAILURE
    return EXIT_ANSWERED


def _by_rule(defenses: Any, rule: str) -> list[Any]:
    """The defences that have certificates, with a rule as what one vote is, unless it is said what it is.

    Raises:
        UsageError: there is none.
    """
    listed = list(defenses) if isinstance(defenses, (list, tuple)) else [defenses]
    entries = [{"name": entry} if isinstance(entry, str) else dict(entry) for entry in listed]
    known = [entry for entry in entries if entry["name"] in METHODS]
    if not known:
        raise UsageError(f"--certify with --retrieve needs a defence that has certificates: {', '.join(METHODS)}")
    return [entry if {"group_by", "group_size"} & entry.keys() else {**entry, "group_by": rule} for entry in known]


def _report(args: argparse.Namespace, lines: Sequence[Any]) -> None:
    from robustrag_integrations.evaluation.retrieval.tables import retrieval_csv, retrieval_table, whole_table

    planted = [line for line in lines if line.m]
    if args.csv:
        write_result("--csv", args.csv, retrieval_csv(lines))
    write_exports(args, [whole_table(planted)])
    if args.plots:
        from robustrag_integrations.evaluation.retrieval.figures import save_retrieval_plots

        for path in save_retrieval_plots(lines, args.plots):
            complain(f"plot: {path}")
    if args.json:
        show_json({"schema": "robustrag/retrieval-summary/1", "lines": [line.to_dict() for line in lines]})
    else:
        show(retrieval_table(planted, terminal_width()))
