"""The first example of the playground: the first question of `robustrag demo`, and the passages that it finds."""

from __future__ import annotations

from robustrag_integrations.corpus import BM25Index, split
from robustrag_integrations.evaluation.data.world import asked_about, read_world, world_folder
from robustrag_integrations.playground.state import Row, State

_FOUND, _READ = 12, 10  # some more than are read, which come back when a planted one is removed


def example() -> State:
    """Return the question with its right answer and an attacker's, and its passages, with nothing planted yet."""
    folder = world_folder()
    case = next(asked_about(folder))
    found = BM25Index(split(read_world(folder))).search(case.question, _FOUND)
    return State(
        question=case.question,
        rows=tuple(Row(p.text, p.source or "") for p in found),
        answer=case.answers[0],
        target=case.incorrect or "",
        top_k=_READ,
    )
