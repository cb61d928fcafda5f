"""The page on faults, from a run of the whole matrix: `python -m tests.faults.table --out docs/faults.md`."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from tests.faults.clients import CLIENTS, client_of
from tests.faults.matrix import HIT, PATIENCE, PLACES, Outcome, observe
from tests.faults.misbehaviour import FAULTS
from tests.helpers.openai_server import LoopbackServer, obedient_reader

NAMES = {"core": "core", "langchain": "LangChain", "llamaindex": "LlamaIndex"}
LIBRARIES = ("openai", "langchain-openai", "llama-index-llms-openai-like")
_LONGEST = 20  # characters of an answer that are shown

INTRODUCTION = f"""\
# When the server misbehaves

What comes of each thing that a model's server can do wrong, asked through `OpenAIModel` (core), `ChatOpenAI`
(LangChain) and `OpenAILike` (LlamaIndex). Seven sources agree that the mill is run by Anna Lind, so that the answer has
radius 2 when nothing goes wrong; the server, a real one on loopback, has one fault at one place. Every request is tried
once.

- A group whose request fails has abstained: the answer stays, with the radius that the other groups give it. Fewer than
  half of the groups (the quorum) is a `QuorumError` that names what happened to each.
- A failed final call is an error, never half an answer.
- A client waits as long as it was told to for a server that hangs or trickles, {PATIENCE:g} s here.
- No thread, task, socket or file is left behind, whatever happens. A cancelled question ends at once and hangs up.
- "50 MB": `OpenAIModel` reads 8 MiB of an answer at most. The frameworks' clients read all of it; what a group says is
  then cut to 100,000 characters and is that group's word, a final answer is as long as the server makes it.
- "duplicate keys": the last one counts, as in any JSON. Two of seven groups that so say something else are outvoted,
  four are a majority.
- "empty choices" in a stream: the frameworks' clients take a stream that ends without saying why for a whole one;
  `OpenAIModel` does not.

Seconds are those of one run, asked synchronously and asynchronously; of a cancellation, from the request to stop until
everything had stopped. `python -m tests.faults.table --out docs/faults.md` runs all of it again; the tests in
`tests/faults` run it in CI, where they assert everything but the seconds.
"""

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


def outcomes(kind: str, name: str, place: str) -> list[Outcome]:
    """Asked synchronously and asynchronously; a cancellation is asynchronous always."""
    styles = (True,) if place.startswith("cancelled") else (False, True)
    return [observe(kind, name, place, asynchronous=style) for style in styles]


def cells(name: str, place: str, of_clients: Iterable[Outcome]) -> list[str]:
    """The columns that any run fills in the same way but for the last, what was raised."""
    found = list(of_clients)
    hit = [o.groups[0] if place in HIT and o.groups else "–" for o in found]
    answers = [shown(o.answer) for o in found]
    radii = ["–" if o.radius is None else str(o.radius) for o in found]
    raised = ["–" if o.raised is None else f"`{o.raised.__name__}`" for o in found]
    return [name, *map(merged, (hit, answers, radii, raised))]


def merged(of_clients: list[str]) -> str:
    """One cell for what is the same in all clients, or each one's own."""
    return of_clients[0] if len(set(of_clients)) == 1 else " / ".join(of_clients)


def shown(answer: str | None) -> str:
    """An answer that may be fifty megabytes long."""
    if answer is None:
        return "–"
    return answer if len(answer) <= _LONGEST else f"{answer[:3]}… ({len(answer):,} characters)"


def rows(place: str) -> Iterator[list[str]]:
    """The table of one place, a line at a time."""
    yield ["fault", "hit groups", "answer", "radius", "raised", *(f"{NAMES[kind]}, s" for kind in CLIENTS)]
    for name in FAULTS:
        found = {kind: outcomes(kind, name, place) for kind in CLIENTS}
        for kind, each in found.items():
            if len({(shown(o.answer), o.radius, o.raised) for o in each}) > 1:
                raise AssertionError(f"{kind}, {name}, {place}: synchronous and asynchronous differ: {each}")
        seconds = [", ".join(f"{o.seconds:.2f}" for o in found[kind]) for kind in CLIENTS]
        yield [*cells(name, place, (found[kind][-1] for kind in CLIENTS)), *seconds]


def line(row: Iterable[str]) -> str:
    """A row in Markdown."""
    return f"| {' | '.join(row)} |"


def page() -> Iterator[str]:
    """The page, line by line, as it comes about."""
    yield INTRODUCTION
    machine = f"Python {platform.python_version()} on {platform.machine()}"
    yield f"Run with {machine}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}.\n"
    for place in PLACES:
        yield f"## {HEADINGS[place]}\n"
        for number, row in enumerate(rows(place)):
            yield line(row)
            if number == 0:
                yield line(["---"] * len(row))
        yield ""


def main() -> None:
    """Run the matrix, which takes some minutes, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.table", description=__doc__)
    parser.add_argument("--out", type=Path, help="default: standard output")
    out = parser.parse_args().out
    for kind in CLIENTS:  # what is loaded and set up once is no part of a question
        with LoopbackServer(obedient_reader) as server, client_of(kind, server.url) as client:
            client.ask()
    written = []
    for text in page():
        written.append(text)
        print(text, flush=True, file=sys.stderr if out else sys.stdout)
    if out:
        out.write_text("\n".join(written).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
