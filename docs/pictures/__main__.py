"""Draws the pictures of recorded runs, the same bytes each time; with `--record`, runs and records them first."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.pictures.choosing import choosing, decisions
from docs.pictures.hero import hero
from docs.pictures.record import record_attack, record_terminal
from docs.pictures.terminal import terminal

HERE = Path(__file__).parent
PICTURES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "hero": (record_attack, hero),
    "demo": (record_terminal, terminal),
    "choosing": (decisions, choosing),
}


def drawn(name: str) -> str:
    """A picture of what is recorded in `NAME.json`."""
    return PICTURES[name][1](json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")))


def main(arguments: list[str]) -> int:
    """Draw all pictures."""
    if arguments not in ([], ["--record"]):
        print("usage: python -m docs.pictures [--record]", file=sys.stderr)
        return 2
    for name, (record, _) in PICTURES.items():
        if arguments:
            text = json.dumps(record(), indent=1, ensure_ascii=False)
            (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (HERE / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
