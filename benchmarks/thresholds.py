"""Thresholds of keyword aggregation by what they keep: `python -m benchmarks.thresholds --help`.

Replies are scripted, so that no model is asked: those of a file of agreeing replies (rows with `question`, `answer`,
`lie`, `honest` and `lies`), or of a reader of a question file in the paper's layout that is right, wrong or silent at
given rates. Of ten groups the first k' are the attacker's, who say the lie. What is counted is what reaches the final
prompt: the answer (right: without the lie), and the lie. The final call is not asked.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations.defenses.keyword.counting import keyword_radius, tally_keywords
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.registry import KEYWORD
from robustrag_integrations.metrics import contains_answer
from robustrag_integrations.models.base import Response

GROUPS = 10
CORRUPTED = (0, 1, 2, 3, 4)
RULES: tuple[dict[str, Any], ...] = (
    *({"alpha": alpha, "beta": beta} for alpha, beta in ((0.3, 3), (0.4, 4), (0.5, 5))),
    *({"share": share} for share in (0.4, 0.5, 0.6, 0.67, 0.75)),
)
RATES = ((0.8, 0.1), (0.6, 0.1), (0.6, 0.3), (0.4, 0.1), (0.3, 0.0))  # of groups that are right, and wrong
WORDINGS = ("{}", "{}.", "It was {}.", "The answer is {}.", "According to the passage, it is {}.", "{}, it says.")
Keywords = frozenset[str] | None


@dataclass(frozen=True)
class Case:
    """One question with its groups' replies, the honest ones and the attacker's."""

    question: str
    answers: tuple[str, ...]
    lies: tuple[str, ...]
    honest: tuple[str, ...]
    evil: tuple[str, ...]
    outvoted: int = 0  # of the honest groups say the lie, too, where no attack is


def agreement(path: Path, languages: str) -> Iterator[Case]:
    """Eight honest replies in their own words, and two equal lies."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if languages == "all" or (row["language"] == "en") == (languages == "en"):
            honest = tuple(row["honest"][i % len(row["honest"])] for i in range(GROUPS))
            yield Case(row["question"], tuple(row["answer"]), tuple(row["lie"]), honest, tuple(row["lies"][:1]), 2)


def scripted(paths: Sequence[Path], limit: int, right: float, wrong: float) -> Iterator[Case]:
    """A reader of ten passages that is right, wrong or silent at these rates, in varied words."""
    for row in _rows(paths)[:limit]:
        answers, lie = [str(a) for a in row["correct answer"]], str(row["incorrect answer"])
        others = [c for c in map(str, row["choices"]) if c not in (*answers, lie)] or [lie]
        rng = random.Random(row["question"])
        replies = []
        for _ in range(GROUPS):
            drawn, wording = rng.random(), rng.choice(WORDINGS)
            said = answers[0] if drawn < right else rng.choice([*others, lie]) if drawn < right + wrong else None
            replies.append("I don't know" if said is None else wording.format(said))
        yield Case(str(row["question"]), tuple(answers), (lie,), tuple(replies), (lie,))


def _rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            read = [json.loads(line) for line in lines]
        found += [row for row in read if row.get("incorrect answer") and row.get("choices")]
    return random.Random(0).sample(found, len(found))


class Counts:
    """What the rules keep of the questions so far."""

    def __init__(self) -> None:
        self.right: list[dict[int, bool]] = []
        self.lied: list[dict[int, bool]] = []
        self.radii: list[int] = []

    def row(self) -> list[str]:
        """The shares and radii as cells of a table."""
        shown = [_percent(found[0] for found in self.right)]
        shown += [f"{_percent(r[k] for r in self.right)} / {_percent(h[k] for h in self.lied)}" for k in CORRUPTED[1:]]
        bounded = [f"{sum(r >= least for r in self.radii) / len(self.radii):.0%}" for least in (1, 2)]
        return [*shown, f"{statistics.median(self.radii):g}", f"{statistics.mean(self.radii):.2f}", *bounded]


def measure(cases: Iterable[Case]) -> dict[str, Counts]:
    """Every rule on the same keyword sets."""
    rules = {KeywordSettings.of(**given).rule.in_words: KeywordSettings.of(**given).rule for given in RULES}
    found = {name: Counts() for name in rules}
    reader = KeywordSettings.of().reader
    for case in cases:
        own, known = reader.for_question(case.question), {}
        for reply in {*case.honest, *case.evil}:
            known[reply] = own.keywords_of(Response(reply)).found
        for name, rule in rules.items():
            counts = found[name]
            counts.right.append({})
            counts.lied.append({})
            for k in CORRUPTED:
                evil = [case.evil[i % len(case.evil)] for i in range(k or case.outvoted)]
                sets: list[Keywords] = [known[reply] for reply in (*evil, *case.honest)[:GROUPS]]
                tally = tally_keywords(sets, rule)
                answered, lied = _says(tally.retained, case.answers), _says(tally.retained, case.lies)
                counts.right[-1][k], counts.lied[-1][k] = answered and not lied, lied
                if k == 0:
                    counts.radii.append(keyword_radius(tally, sets, rule))
    return found


def _says(retained: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(contains_answer(word, wanted) for word in retained)


def _percent(flags: Iterable[bool]) -> str:
    known = list(flags)
    return f"{sum(known) / len(known):.0%}"


def show(title: str, cases: Iterable[Case]) -> None:
    """Print one table."""
    counted = measure(cases)
    header = [
        "kept",
        "right",
        *(f"k'={k} right / lie" for k in CORRUPTED[1:]),
        "median r",
        "mean r",
        "r >= 1",
        "r >= 2",
    ]
    print(f"\n{title}")
    for line in (header, ["---"] * len(header), *([name, *counts.row()] for name, counts in counted.items())):
        print(f"| {' | '.join(line)} |")


def main() -> int:
    """Measure what was given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.thresholds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agreement", type=Path, metavar="FILE", help="JSON lines of agreeing replies")
    parser.add_argument(
        "--questions", type=Path, nargs="+", default=[], metavar="FILE", help="question files, .jsonl.gz"
    )
    parser.add_argument("--limit", type=int, default=200, help="questions of those files (default 200)")
    chosen = parser.parse_args()
    print(f"default: {KeywordSettings.of().rule.in_words} ({KEYWORD.default('threshold')})")
    if chosen.agreement:
        for languages in ("en", "other"):
            show(f"agreeing replies, 8 honest and 2 lies, {languages}", agreement(chosen.agreement, languages))
    for right, wrong in RATES if chosen.questions else ():
        show(f"right {right:.0%}, wrong {wrong:.0%}", scripted(chosen.questions, chosen.limit, right, wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
