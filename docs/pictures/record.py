"""Runs what the pictures show: one attack on the bundled reader, and `robustrag demo` in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from typing import Any

from robustrag_integrations.display import printable

COLUMNS, ROWS = 104, 34
COMMAND = ("robustrag", "demo")
_MOST = 200_000  # characters of a recorded run


def record_attack(passages: int = 7) -> dict[str, Any]:
    """The first question of the demonstration under prompt injection, by vanilla RAG and by keyword aggregation."""
    from robustrag_integrations.cli.demonstration import defenses_of, demonstrate, plantings_on
    from robustrag_integrations.cli.models import load_model
    from robustrag_integrations.corpus import BM25Index, split
    from robustrag_integrations.evaluation.data.world import asked_about, read_world, world_folder

    folder = world_folder()
    case = next(iter(asked_about(folder)))
    found = BM25Index(split(read_world(folder))).search(case.question, passages)
    [attack] = [a for a in plantings_on(case, found, []) if a.name == "prompt injection"]
    defenses = defenses_of(load_model("bundled", None, max_context_tokens=256), choices=False)
    chosen = {name: defenses[name] for name in ("vanilla", "keyword")}
    vanilla, robust = (o.answer for o in demonstrate(case, found, [attack], chosen))
    group_of = {rank: group for group in robust.groups for rank in group.positions}
    rows = [
        {
            "text": passage.text,
            "planted": passage.text in attack.planted,
            "says": group_of[rank].response,
            "status": group_of[rank].status,
        }
        for rank, passage in enumerate(attack.on(found))
    ]
    return {
        "question": case.question,
        "wanted": case.incorrect,
        "passages": rows,
        "vanilla": vanilla.text,
        "answer": robust.text,
        "radius": robust.radius,
    }


def record_terminal() -> dict[str, Any]:
    """What the command prints on a terminal, line by line, each with the second at which it was whole."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": str(COLUMNS), "HF_HUB_OFFLINE": "1"}
    program = [sys.executable, "-m", "robustrag_integrations", *COMMAND[1:]]
    start = time.monotonic()
    running = subprocess.Popen(program, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment)  # noqa: S603
    os.close(theirs)
    lines: list[tuple[float, str]] = []
    held, read = b"", 0
    while read < _MOST and select.select([ours], [], [], 300)[0]:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when nobody writes any more
            break
        if not piece:
            break
        read += len(piece)
        *whole, held = (held + piece).split(b"\n")
        now = round(time.monotonic() - start, 2)
        lines += [(now, printable(line.decode("utf-8", "replace").rstrip("\r"))) for line in whole]
    os.close(ours)
    if code := running.wait(60):
        raise RuntimeError(f"{' '.join(program)} ended with {code}: {lines[-3:]}")
    return {"command": " ".join(COMMAND), "columns": COLUMNS, "lines": [list(line) for line in lines]}
