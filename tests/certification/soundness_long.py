"""The long run of the brute-force soundness check, in shards: `python -m tests.certification.soundness_long --help`.

Five million attacks by default, spread over keyword, list, voting, decoding and consensus worlds. Each shard has a seed
of its own and becomes a line of the log, so that a run that was stopped goes on where it was. Fails at the first
violation.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.brute_force import Cell, Count, Tally, attack_certificates
from tests.helpers.worlds import consensus_world, decoding_world, keyword_world, list_world, voting_world

MAKERS = {
    "keyword": keyword_world,
    "list": list_world,
    "voting": voting_world,
    "decoding": decoding_world,
    "consensus": consensus_world,
}
SHARES = {"keyword": 0.25, "list": 0.2, "voting": 0.35, "decoding": 0.1, "consensus": 0.1}
SHARD = 10_000  # attacks; a shard ends with the world that reaches them
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Shard:
    """Worlds of one defence, made from one seed."""

    defense: str
    number: int
    seed: str
    code: str

    def explore(self) -> dict[str, Any]:
        """Attack what is promised in worlds until there are enough attacks; the result is a line of the log."""
        gc.set_threshold(50_000)  # attacks leave no cycles behind; looking for them takes a tenth of the time
        start, tally = time.process_time(), Tally()
        for world in range(10 * SHARD):
            rng = random.Random(f"{self.seed}/{self.defense}/{self.number}/{world}")
            attack_certificates(MAKERS[self.defense](rng), rng, tally, placements=32, replies=200)
            if tally.violations or tally.total.attacks >= SHARD:
                break
        return {
            **vars(self),
            "worlds": tally.worlds,
            "violations": tally.violations,
            "cells": [[*cell, vars(count)] for cell, count in sorted(tally.cells.items())],
            "cpu_seconds": round(time.process_time() - start, 2),
        }


def shards(attacks: int, seed: str) -> list[Shard]:
    """As many shards as that many attacks take, those of the defences mixed."""
    code = fingerprint()
    found = [
        ((number + 0.5) / share, Shard(defense, number, seed, code))
        for defense, share in SHARES.items()
        for number in range(math.ceil(share * attacks / SHARD))
    ]
    return [shard for _, shard in sorted(found, key=lambda item: item[0])]


def fingerprint() -> str:
    """A hash of the code under test and of the worlds: lines of the log count only for the code that wrote them."""
    helpers = [ROOT / "tests" / "helpers" / name for name in ("brute_force.py", "worlds.py")]
    files = sorted([*(ROOT / "robustrag_integrations").rglob("*.py"), *helpers])
    whole = hashlib.sha256(b"".join(path.read_bytes() for path in files))
    return whole.hexdigest()[:16]


def results(wanted: Sequence[Shard], log: Path | None, processes: int) -> Iterator[dict[str, Any]]:
    """The shards' lines: first those that the log holds already, then new ones as they are done."""
    left = dict.fromkeys(wanted)
    for line in log.read_text().splitlines() if log is not None and log.exists() else ():
        known = json.loads(line)
        shard = Shard(**{name: known[name] for name in Shard.__dataclass_fields__})
        if shard in left:
            del left[shard]
            yield known
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for result in pool.imap_unordered(Shard.explore, left):
            if log is not None:
                with log.open("a") as out:
                    out.write(json.dumps(result) + "\n")
            yield result


def summary(done: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What all shards found together, JSON-safe: per defence, attacker, group size and corruption size, and in all."""
    cells: dict[Cell, Count] = {}
    for result in done:
        for _, *cell, count in result["cells"]:
            key: Cell = (result["defense"], *cell)
            cells[key] = cells.get(key, Count()) + Count(**count)
    names = ("defense", "attack", "group_size", "corruption_size")
    return {
        "attacks": sum(c.attacks for c in cells.values()),
        "violations": sum(len(result["violations"]) for result in done),
        "worlds": sum(result["worlds"] for result in done),
        "shards": len(done),
        "cpu_seconds": round(sum(result["cpu_seconds"] for result in done)),
        "seed": sorted({result["seed"] for result in done}),
        "code": sorted({result["code"] for result in done}),
        "defenses": {
            name: vars(sum((count for cell, count in cells.items() if cell[0] == name), Count())) for name in SHARES
        },
        "cells": [{**dict(zip(names, cell, strict=True)), **vars(count)} for cell, count in sorted(cells.items())],
    }


def table(found: dict[str, Any]) -> str:
    """The summary as a Markdown table."""
    lines = [
        "| defence | attacker | group size | k' | attacks | certificates | tau > 0 | finite R, tau reached |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in [*found["cells"], *({"defense": f"**{name}**", **row} for name, row in found["defenses"].items())]:
        count = Count(**{name: row[name] for name in vars(Count())})
        shown = [row["defense"], *(row.get(name, "all") for name in ("attack", "group_size", "corruption_size"))]
        shown += [f"{count.attacks:,}", f"{count.certificates:,}", f"{count.positive:,}", count.tightness]
        lines.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the shards that are missing, and sum them all up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="?", type=int, default=5_000_000, help="how many, at least")
    parser.add_argument("--seed", default="long", help="what all worlds are made from")
    parser.add_argument("--processes", type=int, default=1, help="shards explored at a time")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only every Nth shard, for N runs with one log")
    parser.add_argument("--log", type=Path, help="JSONL of the shards; a run with the same log goes on where it was")
    parser.add_argument("--summary", type=Path, help="where to write the figures as JSON")
    chosen = parser.parse_args()
    part, parts = map(int, chosen.part.split("/"))
    wanted = shards(chosen.attacks, chosen.seed)[part - 1 :: parts]
    from tqdm import tqdm

    done = []
    with tqdm(total=chosen.attacks // parts, unit=" attacks", unit_scale=True) as bar:
        for result in results(wanted, chosen.log, chosen.processes):
            done.append(result)
            bar.update(sum(count["attacks"] for *_, count in result["cells"]))
            if result["violations"]:
                bar.close()
                print(f"VIOLATION in {result['defense']} shard {result['number']}: {result['violations'][0]}")
                return 1
    found = summary(done)
    if chosen.summary:
        chosen.summary.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    print(f"\n{found['attacks']:,} attacks in {found['worlds']:,} worlds, {found['violations']} violations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
