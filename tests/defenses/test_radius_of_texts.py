"""No attack within the radius changes an answer of real texts, and none within `radius_verbatim` a letter of it.

Amounts, case, code, lists, German and Chinese: groups reply with texts that share words. Replaced groups say what
others say, runs of it, or texts made of both. The code attacked is the one that makes the answer, without a plan
around it: `test_radius.py` has that.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

from robustrag_integrations.defenses.agreement.plurality import Count
from robustrag_integrations.defenses.consensus.outcome import Outcome
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.keys import key_of

UNKNOWN = "I don't know"
WORLDS = {
    "Which structure collapsed?": "Tunnel|Road tunnel|tunnel collapse|The road tunnel|Bridge|road bridge|Tunnel."
    "|A tunnel, not a bridge|Structure",
    "How do I list the pods?": "kubectl get pods|Use `kubectl get pods`|kubectl delete pods|`kubectl get pods -n web`"
    "|kubectl get|get pods|pods|kubectl GET pods",
    "How far is it?": "5 km|5 km/h|less than 5 km|5|km|7 km|about 5 km or 7 km|5 km.|far",
    "Who won the prize?": "George Santos|Santos|Mr George Santos|George Soros|Santos George|George|Soros won the prize"
    "|not George Santos|the prize",
    "When did it open?": "14 September 1962|September 14, 1962|1962|14 September 1926|September|open|in September 1962",
    "What is it called?": "The Who|Who|the|salt of other houses|The Salt of Other Houses|it is|of other|Who is it",
    "Which metals?": "copper, nickel|nickel and copper|copper, nickel, cobalt|nickel|copper|cobalt|metals",
    "How long is it?": "3 years|three years|Three years.|3 year|36 months|about three years|2 years|How long is it|3",
    "What does it cost?": "$5 million|five million dollars|$5m|5,000,000 dollars|$5|$6 million|It costs $5m|cost",
    "Is it open?": "Yes|yes.|No|It is open|It is not open|Yes, it is open until 5|no|closed",
    "Which one?": "==|!=|`==`|[]|The == operator|operator",
    "Wo steht die Kirche?": "In Tarsk|Tarsk|die Kirche steht in Tarsk|in der Stadt Tarsk|Brezar|in Brezar am Fluss",
    "谁写了这本书?": "王小明|王小明写的|是王小明|李四|王明|这本书",
}


@dataclass
class World:
    """One question; `Outcome` is the code that makes its answers."""

    question: str

    def __post_init__(self) -> None:
        self.settings = ConsensusSettings()
        self.replies = [*WORLDS[self.question].split("|"), UNKNOWN]
        read = self.settings.reading(self.question)
        self.read = cache(lambda reply: read(Response(reply)))

    def counted(self, replies: Sequence[str]) -> Outcome:
        """What is shown, and what computes its radius."""
        return Outcome.of([self.read(reply).found for reply in replies], self.settings.rule)


@dataclass
class Found:
    """What came of attacks."""

    attacks: int = 0
    promising: int = 0
    violations: list[Any] = field(default_factory=list)
    limited: int = 0
    reached: int = 0


def attacked(
    world: World, replies: Sequence[str], size: int, most: int, rng: random.Random
) -> Iterator[tuple[str, ...]]:
    """The replies with `size` of them replaced: all by the same text, or each by one of its own."""
    runs = sorted({" ".join(reply.split()[:-1]) for reply in replies} - {""})[:8]
    texts = [*world.replies, *runs, "zebra"]
    places = list(itertools.combinations(range(len(replies)), size))
    for chosen, text in rng.sample([*itertools.product(places, texts)], min(most, len(places) * len(texts))):
        yield tuple(text if place in chosen else reply for place, reply in enumerate(replies))
    for _ in range(most):
        crafted = [" ".join(rng.choices([*texts, "0"], k=rng.randint(1, 3))) for _ in range(size)]
        new = dict(zip(rng.choice(places), crafted, strict=True))
        yield tuple(new.get(place, reply) for place, reply in enumerate(replies))


def attack(attacks: int, seed: str) -> Found:
    """Attack answers until there were so many attacks, or there is a violation."""
    rng, found = random.Random(f"{seed}/consensus"), Found()
    worlds = list(map(World, WORLDS))
    while found.attacks < attacks and not found.violations:
        world = rng.choice(worlds)
        common = rng.sample(world.replies, rng.randint(1, 3))
        replies = [rng.choice(common if rng.random() < 0.85 else world.replies) for _ in range(rng.randint(3, 7))]
        outcome = world.counted(replies)
        radius, verbatim = max(0, outcome.radius()), max(0, outcome.radius(verbatim=True))
        assert verbatim <= radius
        found.promising += radius > 0
        for size in range(1, min(radius, len(replies)) + 1):
            for said in attacked(world, replies, size, 60, rng):
                found.attacks += 1
                shown = world.counted(said).text
                if key_of(shown) != key_of(outcome.text) or (size <= verbatim and shown != outcome.text):
                    found.violations.append((world, replies, outcome.text, radius, verbatim, said, shown))
        if radius < len(replies):
            found.limited += 1
            beyond = attacked(world, replies, radius + 1, 100, rng)
            found.reached += any(key_of(world.counted(said).text) != key_of(outcome.text) for said in beyond)
    return found


def test_no_attack_within_the_radius_changes_the_answer() -> None:
    found = attack(10_000, "ci")
    assert found.violations == []
    assert found.promising > 20
    assert found.reached >= 0.8 * found.limited


def always(self: Any, votes: Any, most: int, pending: int = 0, *, verbatim: bool = False) -> Any:
    return np.ones(most + 1, bool)


def whatever_the_wording(self: Outcome, votes: Any, most: int, pending: int = 0, *, verbatim: bool = False) -> Any:
    return self.count.holding(votes, most, pending)


@pytest.mark.parametrize(("of", "mistaken"), [(Outcome, whatever_the_wording), (Count, always)])
def test_an_error_planted_in_the_radius_is_caught(of: Any, mistaken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "holding", mistaken)
    assert attack(20_000, "planted").violations
