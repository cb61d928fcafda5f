"""The long run of the brute-force soundness check: `python -m tests.certification.soundness_long [ATTACKS] [SEED]`.

Five million attacks by default, spread over keyword, voting and decoding worlds; prints what it found every ten
thousand attacks of a kind and at the end, and fails at the first violation.
"""

from __future__ import annotations

import itertools
import random
import sys

from tests.certification.worlds import Tally, World, decoding_world, explore, keyword_world, voting_world

SHARES = {keyword_world: 0.4, voting_world: 0.35, decoding_world: 0.25}


def main(attacks: int, start: str) -> int:
    tallies = {make: Tally() for make in SHARES}
    shown = 0
    for number in itertools.count():
        behind = [make for make, share in SHARES.items() if tallies[make].attacks < share * attacks]
        if not behind:
            break
        for make in behind:
            rng = random.Random(f"{start}/{make.__name__}/{number}")
            world: World = make(rng)
            explore(world, rng, tallies[make], placements=24, replies=100)
            if tallies[make].violations:
                print(f"VIOLATION in world {number}: {tallies[make].violations[0]}", flush=True)
                return 1
        if (total := sum(t.attacks for t in tallies.values())) // 100_000 > shown:
            shown = total // 100_000
            _show(tallies)
    _show(tallies)
    return 0


def _show(tallies: dict) -> None:
    print(f"{sum(t.attacks for t in tallies.values())} attacks, 0 violations", flush=True)
    for make, tally in tallies.items():
        print(f"  {tally.report(make.__name__)}", flush=True)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    sys.exit(main(wanted, sys.argv[2] if len(sys.argv) > 2 else "long"))
