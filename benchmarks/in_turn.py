"""Both codes at one piece of work in this process, one question by both in turn; what comes of it is printed as JSON.

    python -m benchmarks.in_turn RobustRAG "voting, clean" --questions 10

`python -m benchmarks --only reference` starts one such process for each piece of work (`beside`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from benchmarks.arguments import count
from benchmarks.beside import PAIRS, QUESTIONS, Measured, Pair
from benchmarks.paper_code import HOW, PaperCode, item_of, paper_code, reader
from benchmarks.timing import Clock
from robustrag_integrations import DecodingAggregation, KeywordAggregation, MajorityVoting, VanillaRAG
from robustrag_integrations.attacks.canned import inject, prompt_injection
from robustrag_integrations.evaluation.data.datasets import EvalQuestion, load_dataset
from robustrag_integrations.metrics import contains_answer
from robustrag_integrations.models.local.model import LocalModel

TOP_K = 10


@dataclass(frozen=True)
class Asked:
    """A question, and the passages that both codes are given."""

    question: EvalQuestion
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What came of one question.

    Attributes:
        right: whether the answer holds the right one.
        certified: how many corruption sizes are certified.
    """

    right: bool
    certified: int = 0


Work = Callable[[Asked], Done]


def compared(name: str, asked: Sequence[Asked], paper: Work, ours: Work, rounds: int, clock: Clock) -> Measured:
    """Ask both in turn; a round before the others is not counted.

    Args:
        name: what standard error calls it.
        asked: the questions of a round.
        paper: what the paper's code does with a question.
        ours: what ours does.
        rounds: how often all are asked.
        clock: what is read before and after each question.
    """
    both = [("reference", paper), ("ours", ours)]
    ratios, done = [], dict[str, list[Done]]()
    for turn in range(rounds + 1):
        seconds = {side: 0.0 for side, _ in both}
        done = {side: [] for side, _ in both}
        for at, one in enumerate(asked):
            for side, work in both[:: 1 if at % 2 else -1]:
                start = clock.read()
                found = work(one)
                seconds[side] += clock.read() - start
                done[side].append(found)
        each = ", ".join(f"{side} {1000 * s / len(asked):.1f}" for side, s in seconds.items())
        print(f"  {name}: {each} ms a question{'' if turn else ' (not counted)'}", file=sys.stderr, flush=True)
        if turn:
            ratios.append(seconds["reference"] / seconds["ours"])
    right = {side: sum(one.right for one in found) for side, found in done.items()}
    certified = {side: sum(one.certified for one in found) for side, found in done.items()}
    return Measured(ratios, len(asked), right, certified)


def _asked(pair: Pair, questions: int) -> list[Asked]:
    task = "mc" if pair.method == "voting" else "qa"
    found = load_dataset("demo", task=task, top_k=TOP_K, limit=questions).questions
    asked = [Asked(one, tuple(p.text for p in one.passages)) for one in found]
    return [_attacked(one) for one in asked] if pair.attacked else asked


def _attacked(asked: Asked) -> Asked:
    """One injected instruction in place of the last passage, as the paper's attacks plant it."""
    planted = prompt_injection(asked.question.question, asked.question.incorrect or "nobody knows")
    found = inject(list(asked.texts), [planted], rank=len(asked.texts))
    return Asked(asked.question, tuple(p.text for p in found))


def _works(pair: Pair, code: PaperCode) -> tuple[Work, Work]:
    paper, ours = _paper_defense(pair.method, code), _our_defense(pair.method)
    if pair.sizes:
        return _paper_certificates(pair.method, paper, pair.sizes), _our_certificates(ours, pair.sizes)
    return _paper(pair.method, paper), _ours(ours)


def _paper_defense(method: str, code: PaperCode) -> Any:
    asked = reader(code)
    if method == "decoding":
        return code.defense.DecodingAgg(asked, SimpleNamespace(eta=0.0, subsample_iter=1))
    kinds = {"vanilla": "RRAG", "keyword": "KeywordAgg", "voting": "MajorityVoting"}
    return getattr(code.defense, kinds[method])(asked)


def _our_defense(method: str) -> Any:
    model = LocalModel.bundled()
    if method == "vanilla":
        return VanillaRAG(model)
    kinds = {"keyword": KeywordAggregation, "decoding": DecodingAggregation, "voting": MajorityVoting}
    return kinds[method](model, group_by="passage")


def _choices(asked: Asked) -> tuple[str, ...]:
    return asked.question.choices


def _item(method: str, asked: Asked) -> dict[str, Any]:
    item = item_of(asked.question, asked.texts)
    return {**item, "choices": list(_choices(asked))} if method == "voting" else item


def _paper(method: str, defense: Any) -> Work:
    def work(asked: Asked) -> Done:
        item = _item(method, asked)
        if method == "vanilla":
            return _judged(method, asked, defense.query_undefended(item))
        return _judged(method, asked, defense.query(item, corruption_size=0)[0])

    return work


def _paper_certificates(method: str, defense: Any, sizes: Sequence[int]) -> Work:
    """Its certificate answers first, and is about one corruption size."""

    def work(asked: Asked) -> Done:
        found = [defense.query(_item(method, asked), corruption_size=size) for size in sizes]
        done = _judged(method, asked, found[0][0])
        return Done(done.right, sum(bool(certified) for _, certified in found) if done.right else 0)

    return work


def _judged(method: str, asked: Asked, said: str) -> Done:
    """The paper's code names an option by its letter."""
    if method == "voting":
        said = next((c for c, letter in zip(_choices(asked), "ABCD", strict=True) if said == f"{letter}."), "")
    return Done(contains_answer(said, asked.question.answers) == 1)


def _ours(defense: Any) -> Work:
    def work(asked: Asked) -> Done:
        said = defense.answer(asked.question.question, asked.texts, choices=_options(defense, asked))
        return Done(contains_answer(said.text, asked.question.answers) == 1)

    return work


def _our_certificates(defense: Any, sizes: Sequence[int]) -> Work:
    def work(asked: Asked) -> Done:
        question, choices = asked.question, _options(defense, asked)
        said = defense.answer(question.question, asked.texts, choices=choices, keep=True)
        found = defense.certify(
            question.question,
            asked.texts,
            question.answers,
            corruption_size=list(sizes),
            choices=choices,
            answer=said,
        )
        certified = sum(one.certified and one.tau == 1 for one in found)
        return Done(contains_answer(said.text, question.answers) == 1, certified)

    return work


def _options(defense: Any, asked: Asked) -> tuple[str, ...] | None:
    return _choices(asked) if isinstance(defense, MajorityVoting) else None


def main(arguments: list[str] | None = None) -> None:
    """Measure one piece of work, and print it as JSON; what the paper's code prints goes to standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.in_turn",
        description=__doc__,
        epilog="pieces of work:\n" + "\n".join(f"  {name}" for name in PAIRS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", type=Path, help=f"the paper's code: {HOW}")
    parser.add_argument("pair", choices=PAIRS, metavar="WORK", help="what both do (see below)")
    parser.add_argument("--rounds", type=count, default=5, help="default 5")
    parser.add_argument("--questions", type=count, default=QUESTIONS, help=f"of a round (default {QUESTIONS})")
    parser.add_argument("--threads", type=count, default=1, help="CPU threads (default 1)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="whose clock is read (default cpu)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    disable_progress_bar()
    pair = PAIRS[options.pair]
    with redirect_stdout(sys.stderr):
        paper, ours = _works(pair, paper_code(options.path))
        asked = _asked(pair, options.questions)
        measured = compared(pair.name, asked, paper, ours, options.rounds, Clock(options.device))
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
