"""The smallest cut between two nodes of a graph, by augmenting shortest paths (Edmonds and Karp)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_NOTHING = 1e-12  # a capacity that small is used up


def source_side(capacities: Sequence[Sequence[float]], source: int, sink: int) -> frozenset[int]:
    """The nodes on the source's side of a smallest cut; the smallest such side where there are several cuts.

    Args:
        capacities: n x n, from row to column, at least 0.
        source: the node that stays.
        sink: the node that is cut off.
    """
    left = [list(map(float, row)) for row in capacities]
    while (path := _shortest_path(left, source, sink)) is not None:
        flow = min(left[a][b] for a, b in path)
        for a, b in path:
            left[a][b] -= flow
            left[b][a] += flow
    return frozenset(_reached(left, source))


def _shortest_path(left: Sequence[Sequence[float]], source: int, sink: int) -> list[tuple[int, int]] | None:
    came_from = _reached(left, source)
    if sink not in came_from:
        return None
    path, at = [], sink
    while at != source:
        path.append((came_from[at], at))
        at = came_from[at]
    return path


def _reached(left: Sequence[Sequence[float]], source: int) -> dict[int, int]:
    """Every node that still can be reached, and from where."""
    came_from, waiting = {source: source}, deque([source])
    while waiting:
        at = waiting.popleft()
        for there, capacity in enumerate(left[at]):
            if capacity > _NOTHING and there not in came_from:
                came_from[there] = at
                waiting.append(there)
    return came_from
