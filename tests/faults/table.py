"""The page on faults, from a run of the whole matrix: `python -m tests.faults.table --out docs/faults.md`."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from tests.faults.clients import CLIENTS, client_of
from tests.faults.matrix import HIT, PATIENCE, PLACES, Outcome, observe, styles_of
from tests.faults.misbehaviour import FAULTS
from tests.helpers.openai_server import LoopbackServer, obedient_reader

NAMES = {"core": "core", "langchain": "LangChain", "llamaindex": "LlamaIndex"}
LIBRARIES = ("openai", "langchain-openai", "llama-index-llms-openai-like")
_LONGEST = 20  # characters of an answer that are shown

INTRODUCTION = f"""\
# When the server misbehaves

This page shows what follows from each thing that a model's server can do wrong, asked through `OpenAIModel` (core),
`ChatOpenAI` (LangChain) and `OpenAILike` (LlamaIndex). Seven sources agree that the mill is run by Anna Lind. Three
are enough for a keyword (alpha = 0.3, beta = 3), so the answer has radius 2 when nothing goes wrong. The server is a
real one on loopback and has one fault at one place. Every request is tried once.

- A group whose request fails has abstained: the answer stays, with the radius that the other groups give it. If fewer
  than half of the groups could be asked (the quorum), a `QuorumError` names what happened to each.
- A failed final call is an error, never half an answer. So is one that was cut at its limit of tokens or by a content
  filter, which servers say with HTTP 200; a group whose reply was cut abstains ([what a reply is](replies.md)).
- **Time.** A client waits for a server that hangs or trickles until its time limit, {PATIENCE:g} s here.
  `timeout` is the limit of one try, from connecting to the last byte; in `OpenAIModel` it includes reading the reply.
  A whole answer may take the isolated calls and the final call, each with its retries and the waits between them, and
  whatever they wait for a free slot.
- **Size.** `OpenAIModel` refuses a reply of more than 64 KiB and 128 bytes for each token of `max_tokens` (more for
  log probabilities and for streams), reads larger ones off the event loop, and looks at the first choice alone. The
  frameworks' clients read all of it, and a reply with very many parts ("2,000 choices" is a small one) keeps them,
  and the event loop they run in, busy for seconds; what a group says is then cut to 100,000 characters. Where the
  server is not yours, give those clients an `http_client` with a limit.
- **Redirects.** `OpenAIModel` follows none, on the same host or another ("307"): passages go to the server that you
  named. The frameworks' clients follow them, and the reply of the other server counts. An
  `http_client=httpx.Client(follow_redirects=False)` (and its asynchronous twin) puts that right.
- **Threads.** Nothing is left behind by an answer in these tables once the server has hung up. A synchronous call
  that ran out of time cannot be stopped from outside. It is given up: its group has failed, and the others answer. Its
  thread, connection and download stay until the function returns, so give the client limits of its own, too
  (`ChatOpenAI(timeout=...)`, an `http_client` that bounds what it reads). A model or chain has at most 32 such threads,
  or `max_concurrency` if that is more, besides the calls that are under way; while it has, further calls with a time
  limit fail at once. Asynchronous calls, and all of `OpenAIModel`, are cancelled and hang up. A LangChain model without
  asynchronous methods runs in threads of this package's own, which neither `asyncio.run` nor the end of the program
  waits for.
- **Groups that are not needed.** With `stop_when_decided=True` (consensus and voting) a group that hangs is not waited
  for once the others have decided the answer, however long the time limit is
  ([deciding early](costs.md#deciding-early)). `tests/faults/test_deciding_early.py` asks all three clients.
- **Cancelling.** A cancelled question ends at once and hangs up.
- **Keys.** What a server says is shown without credentials: the client's key in any spelling, what follows `Bearer`
  or `Authorization:`, keys and passwords in addresses. That holds for reports, `QuorumError` and its chained
  exceptions, and the final call's error. It does not hold for what the frameworks hand to callbacks and tracers of
  your own, which get the client's exception as it is.
- "50 MB": a final answer is as long as the server makes it where the client does not refuse it.
- "duplicate keys": the last one counts, as in any JSON. Two of seven groups that say something else in this way are
  outvoted, four are a majority.
- "empty choices" and "2,000 choices" in a stream: the frameworks' clients take a stream that ends without saying why
  for a whole one; `OpenAIModel` does not.

Seconds are those of one run: asked synchronously and asynchronously, then (for one group and for four) as a stream,
synchronously and asynchronously; of a cancellation, from the request to stop until everything had stopped. `python -m
tests.faults.table --out docs/faults.md` runs all of it again; the tests in `tests/faults` run it in CI, where they
assert everything but the seconds.
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
    """In every style that there is at this place."""
    return [observe(kind, name, place, style) for style in styles_of(place)]


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
                raise AssertionError(f"{kind}, {name}, {place}: the styles differ: {each}")
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
    for kind in CLIENTS:  # what is loaded and set up once does not belong to a question
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
