"""The long run: `python -m tests.fuzz.long --inputs 1000000`.

It can be stopped and resumed: the folder holds its state and what it found. `--replay TARGET:SEED:NUMBER`, the name in
the report, runs one failure again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.catalogue import targets
from tests.fuzz.driver import Campaign, Failure, attempt, watched
from tests.fuzz.scaling import Growth, growth
from tests.fuzz.target import Target

TOO_STEEP = 1.6  # the exponent above which the cost does not count as linear


def main(argv: list[str] | None = None) -> int:
    """Run and report; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.long", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many in all (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-results"), help="where the state is kept")
    parser.add_argument("--targets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--growth-every", type=int, default=20_000, help="measure the cost's growth of every Nth input")
    parser.add_argument("--replay", metavar="TARGET:SEED:NUMBER", help="one input again, with its traceback")
    args = parser.parse_args(argv)
    if args.replay:
        return _replay(args.replay)
    chosen = [t for t in targets() if not args.targets or t.name in args.targets]
    if not chosen:
        parser.error(f"no such target; there are {', '.join(t.name for t in targets())}")
    args.folder.mkdir(parents=True, exist_ok=True)
    state = args.folder / f"campaign-{args.seed}.json"
    campaign = Campaign.load(state, chosen) if state.exists() else Campaign(chosen, args.seed)
    _go_on(campaign, args.inputs, args.growth_every, state)
    print(report(campaign))
    return 1 if campaign.failures or campaign.steep else 0


def _go_on(campaign: Campaign, inputs: int, growth_every: int, state: Path) -> None:
    from tqdm import tqdm

    with tqdm(total=inputs, initial=campaign.done, unit="in", mininterval=10, file=sys.stderr) as bar:
        try:
            while campaign.done < inputs:
                with watched():  # one alarm for a stretch of inputs, since setting one for each would cost more
                    for done in campaign.run(min(inputs, campaign.done + 200)):
                        bar.update()
                        if done % 5000 == 0:
                            campaign.save(state)
                            bar.set_postfix(failures=len(campaign.failures))
                if campaign.done % growth_every < 200:
                    _measure(campaign, campaign.done // growth_every)
        finally:
            campaign.save(state)


def _measure(campaign: Campaign, turn: int) -> None:
    """How the cost of one target's slowest input so far grows; each target has its turn."""
    target = campaign.targets[turn % len(campaign.targets)]
    _, key = campaign.slowest.get(target.name, (0.0, ""))
    if key and (found := _too_steep(target, key)):
        campaign.steep.append(
            f"{found.target}:{found.key}: sizes {found.sizes}, seconds {found.costs}, exponent {found.exponent:.2f}"
        )


def _too_steep(target: Target, key: str) -> Growth | None:
    """The growth of a cost that is clearly not linear, measured twice, as another process may have interfered."""
    found = growth(target, key)
    if found is None or found.exponent <= TOO_STEEP:
        return None
    again = growth(target, key)
    return again if again is not None and again.exponent > TOO_STEEP else None


def report(campaign: Campaign) -> str:
    """The report of a campaign as text."""
    lines = [f"{campaign.done:,} inputs, seed {campaign.seed}: {len(campaign.failures)} kinds of failure", ""]
    lines.append(f"{'target':24} {'inputs':>9} {'CPU s':>8} {'us each':>8} {'slowest ms':>10}")
    for name, count in sorted(campaign.counts.items()):
        spent, (worst, _) = campaign.seconds[name], campaign.slowest.get(name, (0.0, ""))
        lines.append(f"{name:24} {count:9,} {spent:8.0f} {spent / count * 1e6:8.0f} {worst * 1e3:10.1f}")
    for kind, failure in sorted(campaign.failures.items()):
        lines += ["", f"{campaign.failed[kind]} x {kind}", f"  --replay {failure.target}:{failure.key}"]
        lines.append(f"  {failure.error}")
    return "\n".join([*lines, *(f"too steep: {found}" for found in campaign.steep)])


def _replay(name: str) -> int:
    target, _, key = name.partition(":")
    [chosen] = [t for t in targets() if t.name == target]
    failure: Failure | None = attempt(chosen, key)
    if failure is None:
        print(f"{name}: nothing wrong")
        return 0
    print("\n".join([failure.trace, *failure.drawn]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
