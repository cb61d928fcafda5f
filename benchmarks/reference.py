"""Compares decoding certificates of the paper's code with ours on the bundled reader, and attacks them with injections.

Run: `python -m benchmarks.reference PATH`, where PATH is a checkout of github.com/inspire-group/RobustRAG at `COMMIT`.
What has to be patched for this reader and today's libraries is said in `paper_code`.

A certificate that the paper's code gives and ours does not is put to the test: k' passages are injected, as in the
paper, and the paper's own inference answers. An answer without the right one breaks the certificate. `--mend` lets the
certificate evict as many passages as are injected.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

from benchmarks.arguments import count
from benchmarks.paper_code import COMMIT, item_of, paper_code, reader
from robustrag_integrations import DecodingAggregation
from robustrag_integrations.evaluation.attacks import false_statement, poisoning, prompt_injection
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.models.local.model import LocalModel


@dataclass(frozen=True)
class Found:
    """One certificate, of a question at k passages against k' injected ones.

    Attributes:
        question: the question.
        answers: what is right.
        k: how many passages are retrieved.
        size: k'.
        paper: whether the paper's code certifies the answer.
        ours: whether ours does.
        clean: the answer of the paper's code without attack.
        attack: the injection that broke the only certificate there was; None if none did.
        broken: the answer under it.
    """

    question: str
    answers: tuple[str, ...]
    k: int
    size: int
    paper: bool
    ours: bool
    clean: str
    attack: str | None = None
    broken: str | None = None


class Comparison:
    """Both codes on one reader."""

    def __init__(self, path: Path, *, mend: bool) -> None:
        code = paper_code(path, mend=mend)
        self._paper = code.defense.DecodingAgg(reader(code), SimpleNamespace(eta=0.0, subsample_iter=1))
        self._ours = DecodingAggregation(LocalModel.bundled(), group_by="passage")

    def certificates(self, question: EvalQuestion, k: int, sizes: Sequence[int]) -> Iterator[Found]:
        """Yield both certificates of a question. One that only the paper's code gives is attacked, and so is ours."""
        texts = [p.text for p in question.passages[:k]]
        sizes = [size for size in sizes if size < k]
        proved = self._ours.certify(
            question.question, texts, question.answers, corruption_size=sizes, top_k=k, max_model_calls=100_000
        )
        for size, ours in zip(sizes, proved, strict=True):
            clean, paper = self._paper.query(item_of(question, texts), corruption_size=size)
            safe = ours.certified and ours.tau == 1
            found = Found(question.question, question.answers, k, size, bool(paper), safe, clean.strip())
            if paper and not safe:
                found = self._attacked(found, question, texts)
            elif safe:
                self._check_ours(question, texts, size)
            yield found

    def _attacked(self, found: Found, question: EvalQuestion, texts: Sequence[str]) -> Found:
        for name, planted in attacks(question, texts, found.size):
            said, _ = self._paper.query(item_of(question, planted), corruption_size=0)
            if not _right(said, question):
                return Found(**{**vars(found), "attack": name, "broken": said.strip()})
        return found

    def _check_ours(self, question: EvalQuestion, texts: Sequence[str], size: int) -> None:
        """Attack a certificate of ours.

        Raises:
            AssertionError: it broke.
        """
        for name, planted in list(attacks(question, texts, size))[:2]:
            said = self._ours.answer(question.question, planted).text
            if not _right(said, question):
                raise AssertionError(f"our certificate broke: {question.question}, {name}: {said}")


def attacks(question: EvalQuestion, texts: Sequence[str], size: int) -> Iterator[tuple[str, list[str]]]:
    """Yield injections of k' passages, mildest reader first, each with the retrieval that it causes."""
    target = question.incorrect or "nobody knows"
    lie = false_statement(question.question, texts, question.answers[0], target)
    for repeat in (1, 3, 10):
        for rank in (1, len(texts) - size + 1):
            for name, text in (
                ("injection", prompt_injection(question.question, target, repeat)),
                ("poisoning", poisoning(lie, repeat)),
            ):
                planted = [*texts[: rank - 1], *[text] * size, *texts[rank - 1 :]][: len(texts)]
                yield f"{name} x{repeat}, {size} from rank {rank} on", planted


def _right(said: str, question: EvalQuestion) -> bool:
    return any(answer.lower() in said.lower() for answer in question.answers)


def main(arguments: list[str] | None = None) -> int:
    """Compare, print the sums, and write every certificate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("path", type=Path, help=f"a checkout of github.com/inspire-group/RobustRAG at {COMMIT[:7]}")
    parser.add_argument("--limit", type=count, help="only the first N questions of the demo set")
    parser.add_argument("--top-k", type=count, nargs="+", default=[3, 4, 5, 6, 8, 10], help="numbers of passages k")
    parser.add_argument("--size", type=count, nargs="+", default=[1, 2, 3], help="numbers of injected passages k'")
    parser.add_argument("--mend", action="store_true", help="let the paper's certificate evict k' passages")
    parser.add_argument("--out", type=Path, default=Path("reference.json"), help="where the certificates are written")
    options = parser.parse_args(arguments)
    comparison, found = Comparison(options.path, mend=options.mend), []
    questions = load_dataset("demo", task="short_answer", top_k=max(options.top_k), limit=options.limit).questions
    for number, question in enumerate(questions, 1):
        for k in options.top_k:
            found += comparison.certificates(question, k, options.size)
        print(f"{number} of {len(questions)} questions", file=sys.stderr, flush=True)
        options.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    print(summary(found))
    return 0


def summary(found: Sequence[Found]) -> str:
    """Count the certificates of each code, and the fate of those that only the paper's gives."""
    lines = [f"{'k':>3} {'k-prime':>7} {'both':>5} {'ours':>5} {'paper':>6} {'broken':>7}"]
    for k, size in sorted({(one.k, one.size) for one in found}):
        lines.append(_line(f"{k:>3} {size:>7}", [one for one in found if (one.k, one.size) == (k, size)]))
    return "\n".join([*lines, _line(f"{'all':>11}", found)])


def _line(name: str, found: Sequence[Found]) -> str:
    both = sum(one.paper and one.ours for one in found)
    ours, paper = (sum(one.ours for one in found) - both), (sum(one.paper for one in found) - both)
    return f"{name} {both:>5} {ours:>5} {paper:>6} {sum(one.broken is not None for one in found):>7}"


if __name__ == "__main__":
    sys.exit(main())
