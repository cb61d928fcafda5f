"""The long run of attacks on radii: `python -m tests.certification.radius_long --help`.

A million attacks by default on each of the threshold of keyword aggregation and consensus. Fails at the first
violation.
"""

from __future__ import annotations

import argparse
import sys

from tests.helpers.radii import ATTACKS, attack


def main() -> int:
    """Attack until there are enough attacks on each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="?", type=int, default=1_000_000, help="on each, at least")
    parser.add_argument("--seed", default="long", help="what all worlds are made from")
    parser.add_argument("--method", nargs="+", choices=tuple(ATTACKS), default=tuple(ATTACKS), help="only these")
    chosen = parser.parse_args()
    for name in chosen.method:
        found = attack(name, chosen.attacks, chosen.seed)
        print(f"{name}: {found}", flush=True)
        if found.violations:
            print(found.violations[0])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
