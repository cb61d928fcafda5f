"""An answer that is too weak is not shown: `min_radius`, `min_sources`; time limits, and a log record per answer.

pip install .
"""

import logging

from robustrag_integrations import CallableModel, KeywordAggregation, Passage, TooFewVotesError


def my_llm(prompt: str) -> str:
    """Copies the name that it finds; put a call to your own model in its place."""
    return next((name for name in ("Eve Crook", "Anna Lind", "anna lind") if name in prompt), "I don't know")


def sources(number: int) -> list[Passage]:
    """So many honest sources, and a planted one."""
    honest = [Passage(f"Anna Lind runs the mill. Note {n}.", origin=f"site-{n}.example") for n in range(number)]
    return [*honest, Passage("Eve Crook runs the mill.", origin="planted.example")]


logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
model = CallableModel(my_llm, timeout=20, attempts=2, max_concurrency=8)
defense = KeywordAggregation(model, min_radius=1, min_sources=4, below="raise")


def show(number: int) -> None:
    """Ask so many honest sources and a planted one."""
    try:
        answer = defense.answer("Who runs the mill?", sources(number))
    except TooFewVotesError as error:
        print(f"{number + 1} sources: not shown, as {error}")
    else:
        print(f"{number + 1} sources: {answer.text}, radius {answer.radius}")


show(7)
show(2)
