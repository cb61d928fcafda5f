"""Memory of a process that answers one question after another with the bundled reader.

    python -m benchmarks.memory --questions 1000

Each question is one of the demo's, with its first five passages and five of others, drawn anew: prompts of all lengths.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Iterator

from benchmarks.arguments import count
from benchmarks.load import resident
from robustrag_integrations import LocalModel
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.data.datasets import EvalQuestion, load_dataset

_OWN, _OTHERS = 5, 5  # passages of a question


def asked(number: int) -> Iterator[tuple[EvalQuestion, list[str]]]:
    """So many questions with their passages, the same ones in each run."""
    drawn, known = random.Random(0), load_dataset("demo").questions
    for index in range(number):
        question = known[index % len(known)]
        others = [drawn.choice(drawn.choice(known).passages).text for _ in range(_OTHERS)]
        texts = [*(passage.text for passage in question.passages[:_OWN]), *others]
        drawn.shuffle(texts)
        yield question, texts


def measure(method: str, questions: int, every: int) -> Iterator[tuple[int, float]]:
    """(questions answered, MiB of this process) after so many each.

    Args:
        method: a defence that needs no options of a question.
        questions: how many are asked.
        every: after how many memory is looked at.
    """
    defense = METHODS[method].build(LocalModel.bundled())
    for answered, (question, texts) in enumerate(asked(questions), 1):
        defense.answer(question.question, texts)
        if answered % every == 0:
            gc.collect()
            yield answered, resident()


def main(arguments: list[str] | None = None) -> None:
    """Print what the process holds, a line for each tenth of the questions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=count, default=1000, help="how many are asked (default 1000)")
    parser.add_argument("--method", choices=("keyword", "decoding", "consensus"), default="keyword")
    args = parser.parse_args(arguments)
    began = time.perf_counter()
    for answered, held in measure(args.method, args.questions, max(1, args.questions // 10)):
        print(f"{answered} questions: {held:.1f} MiB, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
