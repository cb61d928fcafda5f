"""Attacks on certificates and radii for as long as you like: `python -m tests.certification.long_run --help`.

Fails at the first violation.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
from typing import Any

from tests.helpers.brute_force import Tally, attack_certificates
from tests.helpers.radii import ATTACKS, attack
from tests.helpers.worlds import consensus_world, decoding_world, keyword_world, list_world, voting_world

MAKERS = {
    "keyword": keyword_world,
    "list": list_world,
    "voting": voting_world,
    "decoding": decoding_world,
    "consensus": consensus_world,
}


def certificates(name: str, attacks: int, seed: str) -> Tally:
    """Attack the certificates of small worlds until there were enough attacks, or one succeeded."""
    tally, world = Tally(), 0
    while not tally.violations and tally.total.attacks < attacks:
        rng = random.Random(f"{seed}/{name}/{world}")
        attack_certificates(MAKERS[name](rng), rng, tally, placements=32, replies=200)
        world += 1
    return tally


def main() -> int:
    """Attack one kind of world after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="?", type=int, default=1_000_000, help="on each kind, at least")
    parser.add_argument("--seed", default="long", help="what all worlds are made from; one for each process")
    parser.add_argument("--radii", action="store_true", help="attack radii, not certificates")
    chosen = parser.parse_args()
    gc.set_threshold(50_000)  # attacks leave no cycles behind; looking for them takes a tenth of the time
    for name in ATTACKS if chosen.radii else MAKERS:
        run: Any = attack if chosen.radii else certificates
        found = run(name, chosen.attacks, chosen.seed)
        print(f"{name}: {found}" if chosen.radii else found.report(name), flush=True)
        if found.violations:
            print(found.violations[0])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
