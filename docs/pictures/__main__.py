"""Draws the README's picture of a recorded run, the same bytes each time; with `--record`, records it first."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from docs.pictures.hero import hero
from docs.pictures.record import record_attack

HERE = Path(__file__).parent


def drawn() -> str:
    """The picture of what is recorded."""
    return hero(json.loads((HERE / "hero.json").read_text(encoding="utf-8")))


def main(arguments: list[str]) -> int:
    """Draw it."""
    if arguments not in ([], ["--record"]):
        print("usage: python -m docs.pictures [--record]", file=sys.stderr)
        return 2
    if arguments:
        text = json.dumps(record_attack(), indent=1, ensure_ascii=False)
        (HERE / "hero.json").write_text(text + "\n", encoding="utf-8")
    (HERE / "hero.svg").write_text(drawn(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
