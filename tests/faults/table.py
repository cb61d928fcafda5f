"""The tables of docs/internals/faults.md, from what the matrix expects: `python -m tests.faults.table` prints them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.clients import CLIENTS
from tests.faults.matrix import HIT, PLACES, expected
from tests.faults.misbehaviour import FAULTS

_LONGEST = 20  # characters of an answer that are shown
HEADINGS = {
    "one group": "In the request of one group of seven",
    "two groups": "In the requests of two groups",
    "four groups": "In the requests of four groups, more than half",
    "all groups": "In the requests of all groups",
    "final call": "In the final call",
    "streamed final call": "In the final call, while it is streamed",
    "cancelled": "In the request of one group, cancelled while another one hangs",
    "cancelled stream": "In the request of one group (or, of what hangs, in the final call), cancelled in mid-stream",
}


def tables() -> str:
    """A table for each place, with a row for the faults that have the same outcome."""
    return "\n".join(line for place in PLACES for line in _table(place)).rstrip()


def _table(place: str) -> Iterator[str]:
    yield f"### {HEADINGS[place]}\n"
    yield _line("fault", "hit groups", "answer", "radius", "raised")
    yield _line(*["---"] * 5)
    faults: dict[tuple[str, ...], list[str]] = {}
    for name in FAULTS:
        faults.setdefault(_outcome(name, place), []).append(name)
    commonest = max(faults.values(), key=len)
    for outcome, names in faults.items():
        yield _line("all others" if len(names) > 1 and names is commonest else ", ".join(names), *outcome)
    yield ""


def _outcome(name: str, place: str) -> tuple[str, ...]:
    """Hit groups, answer, radius and what is raised: in all clients, or in each."""
    found = [expected(kind, name, place) for kind in CLIENTS]
    hit = [o.groups[0] if place in HIT and o.groups else "–" for o in found]
    answers = [_shown(o.answer) for o in found]
    radii = ["–" if o.radius is None else str(o.radius) for o in found]
    raised = ["an error" if o.raised else "–" for o in found]
    if all(o.raised and o.raised == found[0].raised for o in found):
        raised = [f"`{found[0].raised.__name__}`"]
    return tuple(cell[0] if len(set(cell)) == 1 else " / ".join(cell) for cell in (hit, answers, radii, raised))


def _shown(answer: str | None) -> str:
    """An answer that may be fifty megabytes long."""
    if answer is None:
        return "–"
    return answer if len(answer) <= _LONGEST else f"{answer[:3]}… ({len(answer):,} characters)"


def _line(*row: str) -> str:
    return f"| {' | '.join(row)} |"


if __name__ == "__main__":
    print(tables())
