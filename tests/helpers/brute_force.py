"""The brute force: every kind of attack on small worlds, against the real inference code.

Attacks are made here from scratch (which passages go, which come, where, and what each corrupted source then says), and
know nothing of how certification and radius count them. Both promises are attacked: no answer scores below tau or lies
outside R (`attack_certificates`), and none within the radius is another one (`attack_radius`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import comb

from robustrag_integrations.grouping.passages import Passage, Source, isolate
from robustrag_integrations.replies.keys import key_of
from tests.helpers.worlds import Memo, World, shown

EVIL = "EVIL"


@dataclass
class Count:
    """What came of attacks on promises of one kind: certificates, or radii."""

    attacks: int = 0
    certificates: int = 0
    positive: int = 0  # certificates with tau > 0; radii that reach the size of the attack
    bounded: int = 0  # certificates with a finite R, enumerated in full; radii just below the size of the attack
    reached: int = 0  # of these: an attack scores tau exactly; an attack changes the answer
    open: int = 0  # certificates that say "anything"; these are not attacked

    def __add__(self, other: Count) -> Count:
        return Count(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def tightness(self) -> str:
        """How often an attack reaches the limit that was promised, where there is one."""
        return f"{self.reached} of {self.bounded} ({self.reached / max(self.bounded, 1):.1%})"


Cell = tuple[str, str, str, int]  # defence, attacker, source size, passages or sources that are the attacker's


@dataclass
class Tally:
    """What came of the attacks, by kind of certificate."""

    worlds: int = 0
    violations: list[str] = field(default_factory=list)
    cells: dict[Cell, Count] = field(default_factory=dict)

    @property
    def total(self) -> Count:
        """All kinds together."""
        return sum(self.cells.values(), Count())

    def report(self, name: str) -> str:
        return (
            f"{name}: {self.worlds} worlds, {self.total.attacks} attacks, {len(self.violations)} violations; "
            f"something is promised in {self.total.positive} cases; where there is a limit, an attack reaches it in "
            f"{self.total.tightness}"
        )


def retrievals(world: World, size: int, rng: random.Random, count: int) -> Iterator[list[Passage]]:
    """What the attacker's retriever may return: at most `size` passages gone (modification), at most `size` put in.

    Up to `count` different ones, drawn at random.
    """
    seen: set[tuple[tuple[str, str | None], ...]] = set()
    for _ in range(4 * count):
        listed = _retrieval(world, size, rng)
        key = tuple((p.text, p.origin if world.group_by == "source" else None) for p in listed)
        if key not in seen:
            seen.add(key)
            yield listed
        if len(seen) == count:
            return


def _retrieval(world: World, size: int, rng: random.Random) -> list[Passage]:
    sources = [p.origin for p in world.passages] + [f"new{i}" for i in range(size)]
    left = list(world.passages)
    removed = min(rng.randint(0, size), len(left)) if world.attack == "modification" else 0
    for _ in range(removed):
        left.pop(rng.randrange(len(left)))
    injected = min(rng.choice([size, size, rng.randint(0, size)]), world.limit)
    if len(world.passages) == world.limit:  # the retriever finds enough: nothing goes without something in its place
        injected = max(injected, removed)
    length = min(world.limit, len(left) + injected)
    spots = set(rng.sample(range(length), min(injected, length)))
    benign, evil = iter(left), itertools.count()
    return [
        Passage(f"{EVIL}{next(evil)}", origin=rng.choice(sources)) if i in spots else next(benign)
        for i in range(length)
    ]


def attacks(
    world: World, size: int, rng: random.Random, placements: int, replies: int
) -> Iterator[tuple[Sequence[Source], dict[str, object]]]:
    """Sources as inference sees them, and what the corrupted ones say: everything, or `replies` random choices."""
    for listed in retrievals(world, size, rng, placements):
        sources = isolate(listed, world.passages_per_source, by=world.group_by)
        hit = [g.text for g in sources if EVIL in g.text]
        if len(world.moves) ** len(hit) <= replies:
            choices: Iterator[tuple[object, ...]] = itertools.product(world.moves, repeat=len(hit))
        else:
            choices = iter({tuple(rng.choices(world.moves, k=len(hit))): None for _ in range(replies)})
        for said in choices:
            yield sources, dict(zip(hit, said, strict=True))


def attack_certificates(world: World, rng: random.Random, tally: Tally, placements: int, replies: int) -> None:
    """Certify a world, then attack each certificate."""
    tally.worlds += 1
    for cert in world.certify():
        cell = (cert.method, world.attack, world.kind, cert.corruption_size)
        count = tally.cells.setdefault(cell, Count())
        count.certificates += 1
        count.open += cert.unbounded
        if cert.tau == 0 and not cert.complete:
            continue  # nothing is promised, so nothing can be broken
        lowest = float("inf")
        texts = {r.text for r in cert.responses}
        scores = Memo(world.score)
        for sources, said in attacks(world, cert.corruption_size, rng, placements, replies):
            count.attacks += 1
            text = world.text(sources, said)
            score = scores[text]
            lowest = min(lowest, score)
            if score < cert.tau or (cert.complete and text not in texts):
                shown = [g.text for g in sources]
                tally.violations.append(
                    f"{cert.method} {world.attack}({cert.corruption_size}): {shown} {said} -> {text!r}"
                )
        count.positive += cert.tau > 0
        count.bounded += cert.complete
        count.reached += cert.complete and lowest == cert.tau


def attack_radius(world: World, rng: random.Random, tally: Tally, largest: int, most: int) -> None:
    """Answer in a world, then attack the answer by up to `largest` replaced sources, at most `most` times per number.

    Of the attacks with one source more than the radius, only one that changes the answer is looked for.
    """
    sources = isolate(world.passages, world.passages_per_source, by=world.group_by)
    seen = world.answer(sources)
    if seen is None:
        return
    clean = shown(seen)
    tally.worlds += 1
    for r in range(1, min(seen.radius + 1, largest, len(sources)) + 1):
        count = tally.cells.setdefault((seen.method, "substitution", world.kind, r), Count())
        attempts = substitutions(sources, r, world.moves, rng, most)
        count.certificates += 1
        if r > seen.radius:
            count.bounded += 1
            wider = itertools.chain(in_unison(sources, r, world.moves), attempts)
            count.reached += any(not same(world.text(sources, said), clean) for said in wider)
            continue
        count.positive += 1
        for said in attempts:
            count.attacks += 1
            text = world.text(sources, said)
            if not same(text, clean) or (r <= seen.radius_verbatim and text != clean):
                tally.violations.append(f"{seen.method} radius {seen.radius}: {said} -> {text!r}, not {clean!r}")


def same(text: str | None, other: str) -> bool:
    """Whether two texts are the same answer, in one wording or two."""
    return text is not None and (text == other or key_of(text) == key_of(other))


def in_unison(sources: Sequence[Source], r: int, moves: Sequence[object]) -> Iterator[dict[str, object]]:
    """Every replacement of r sources by one move, which all of them make."""
    for replaced in itertools.combinations([g.text for g in sources], r):
        for move in moves:
            yield dict.fromkeys(replaced, move)


def substitutions(
    sources: Sequence[Source], r: int, moves: Sequence[object], rng: random.Random, most: int
) -> Iterator[dict[str, object]]:
    """Every replacement of r sources by moves; `most` random ones where there are more."""
    names = [g.text for g in sources]
    if comb(len(names), r) * len(moves) ** r <= most:
        for replaced in itertools.combinations(names, r):
            for said in itertools.product(moves, repeat=r):
                yield dict(zip(replaced, said, strict=True))
    else:
        for _ in range(most):
            yield dict(zip(rng.sample(names, r), rng.choices(moves, k=r), strict=True))
