"""What the paper's code costs beside ours: the same reader, questions and passages, one question by both in turn.

Run: `python -m benchmarks --only reference --reference PATH`, where PATH is a checkout of
github.com/inspire-group/RobustRAG (`paper_code`). Both have their default settings and one passage per group. A ratio
is the computing time of the paper's code over ours for all questions of a round; below it stands how many answers are
right, ours over theirs, and how many corruption sizes are certified.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from benchmarks.paper_code import PaperCode, item_of, reader
from benchmarks.results import Ratio, Target
from benchmarks.timing import Clock
from robustrag_integrations import DecodingAggregation, KeywordAggregation, MajorityVoting, VanillaRAG
from robustrag_integrations.attacks.canned import inject, prompt_injection
from robustrag_integrations.evaluation.data.datasets import EvalQuestion, load_dataset
from robustrag_integrations.metrics import contains_answer
from robustrag_integrations.models.local.model import LocalModel

QUESTIONS, TOP_K = 30, 10
GOALS = {"vanilla": 1.0, "keyword": 1.2, "decoding": 2.0, "voting": 1.2}
PARTS = (*GOALS, "certificates")
CERTIFICATES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("keyword", (1,)),
    ("keyword", (1, 2, 3)),
    ("voting", (1,)),
    ("voting", (1, 2, 3)),
    ("decoding", (1,)),
    ("decoding", (1, 2, 3)),
)
_CERTIFICATE_GOAL = 2.0


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


@dataclass(frozen=True)
class Pair:
    """The same piece of work, done by both."""

    name: str
    target: Target
    asked: Sequence[Asked]
    paper: Callable[[Asked], Done]
    ours: Callable[[Asked], Done]


def ratios(
    code: PaperCode, rounds: int, clock: Clock, *, parts: Sequence[str] = PARTS, questions: int = QUESTIONS
) -> list[Ratio]:
    """All ratios of computing time, reference / ours, each followed by the right answers, ours / reference.

    Args:
        code: the paper's.
        rounds: how often all questions are asked.
        clock: what is read before and after each question.
        parts: which of `PARTS`.
        questions: how many of the demo questions are asked.
    """
    return [ratio for pair in _pairs(code, parts, questions) for ratio in compared(pair, rounds, clock)]


def compared(pair: Pair, rounds: int, clock: Clock) -> list[Ratio]:
    """Ask both in turn, the first question once before anything is counted."""
    pair.paper(pair.asked[0])
    pair.ours(pair.asked[0])
    values, found = [], []
    for _ in range(rounds):
        seconds = {"reference": 0.0, "ours": 0.0}
        found = []
        for at, asked in enumerate(pair.asked):
            both = [("reference", pair.paper), ("ours", pair.ours)]
            done = {}
            for name, work in both[:: 1 if at % 2 else -1]:
                start = clock.read()
                done[name] = work(asked)
                seconds[name] += clock.read() - start
            found.append((done["reference"], done["ours"]))
        values.append(seconds["reference"] / seconds["ours"])
        each = ", ".join(f"{name} {1000 * s / len(pair.asked):.1f}" for name, s in seconds.items())
        print(f"  {pair.name}: {each} ms a question", file=sys.stderr, flush=True)
    ratio = Ratio(f"{pair.name}: reference / ours", tuple(values), {"cpu": pair.target})
    return [ratio, *_counted(pair.name, found)]


def _counted(name: str, found: Sequence[tuple[Done, Done]]) -> Iterator[Ratio]:
    """How many answers are right, and certified, by ours over the reference."""
    for what in ("right", "certified"):
        paper, ours = (sum(int(getattr(pair[side], what)) for pair in found) for side in (0, 1))
        if paper or ours:
            note = f"ours {ours}, reference {paper}, of {len(found)} questions"
            print(f"  {name}: {what}: {note}", file=sys.stderr, flush=True)
            value = ours / paper if paper else float(ours)
            target: dict[str, Target] = {"cpu": (">=", 1.0)} if what == "right" else {}
            yield Ratio(f"{name}: {what}, ours / reference", (value,), target, note)


def _pairs(code: PaperCode, parts: Sequence[str], questions: int) -> Iterator[Pair]:
    asked = reader(code)
    paper = {
        "vanilla": code.defense.RRAG(asked),
        "keyword": code.defense.KeywordAgg(asked),
        "decoding": code.defense.DecodingAgg(asked, SimpleNamespace(eta=0.0, subsample_iter=1)),
        "voting": code.defense.MajorityVoting(asked),
    }
    model = LocalModel.bundled()
    ours = {
        "vanilla": VanillaRAG(model),
        "keyword": KeywordAggregation(model, group_by="passage"),
        "decoding": DecodingAggregation(model, group_by="passage"),
        "voting": MajorityVoting(model, group_by="passage"),
    }
    for name, goal in GOALS.items():
        if name not in parts:
            continue
        clean = _questions(name, questions)
        for attack, given in (("clean", clean), ("attacked", [_attacked(one) for one in clean])):
            target = (">=", goal)
            yield Pair(f"{name}, {attack}", target, given, _paper(name, paper[name]), _ours(ours[name]))
    for name, sizes in CERTIFICATES if "certificates" in parts else ():
        title = f"{name}, answer and certificate, k' = {', '.join(map(str, sizes))}"
        clean = _questions(name, questions)
        work = _paper_certificates(name, paper[name], sizes), _our_certificates(ours[name], sizes)
        yield Pair(title, (">=", _CERTIFICATE_GOAL), clean, *work)


def _questions(method: str, count: int) -> list[Asked]:
    task = "mc" if method == "voting" else "qa"
    found = load_dataset("demo", task=task, top_k=TOP_K, limit=count).questions
    return [Asked(one, tuple(p.text for p in one.passages)) for one in found]


def _attacked(asked: Asked) -> Asked:
    """One injected instruction in place of the last passage, as the paper's attacks plant it."""
    planted = prompt_injection(asked.question.question, asked.question.incorrect or "nobody knows")
    found = inject(list(asked.texts), [planted], rank=len(asked.texts))
    return Asked(asked.question, tuple(p.text for p in found))


def _choices(asked: Asked) -> tuple[str, ...]:
    return asked.question.choices


def _item(method: str, asked: Asked) -> dict[str, Any]:
    item = item_of(asked.question, asked.texts)
    return {**item, "choices": list(_choices(asked))} if method == "voting" else item


def _paper(method: str, defense: Any) -> Callable[[Asked], Done]:
    def work(asked: Asked) -> Done:
        item = _item(method, asked)
        if method == "vanilla":
            return _judged(method, asked, defense.query_undefended(item))
        return _judged(method, asked, defense.query(item, corruption_size=0)[0])

    return work


def _paper_certificates(method: str, defense: Any, sizes: Sequence[int]) -> Callable[[Asked], Done]:
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


def _ours(defense: Any) -> Callable[[Asked], Done]:
    def work(asked: Asked) -> Done:
        said = defense.answer(asked.question.question, asked.texts, choices=_options(defense, asked))
        return Done(contains_answer(said.text, asked.question.answers) == 1)

    return work


def _our_certificates(defense: Any, sizes: Sequence[int]) -> Callable[[Asked], Done]:
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
