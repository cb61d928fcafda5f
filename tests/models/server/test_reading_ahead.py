"""Remote decoding that asks for several tokens at once: the same answers and certificates as token by token."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the extra openai")

from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.decoding.certifier import decoding_run
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.errors import ModelError
from robustrag_integrations.metrics import contains_answer
from robustrag_integrations.models.server.continuations import Continuation
from robustrag_integrations.passages import Passage, isolate
from robustrag_integrations.plans.performers import DecodingPerformer
from tests.helpers.scripted import BARE
from tests.helpers.simulated_server import ABSTENTIONS, SimulatedServer, random_row
from tests.helpers.worlds import Memo, driven

WORLDS = 1500


class World:
    """Distributions per passage and prefix, of which most groups agree on the best token at most places."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.size = rng.randrange(5, 9)
        self.passages = [f"p{i}" for i in range(rng.randrange(1, 7))]
        self.agreement = rng.choice([0.3, 0.7, 0.9, 0.97, 1.0])

        def per(kind: str, value: Any) -> Memo:
            """Drawn once per key, whatever is asked for first."""
            return Memo(lambda key: value(random.Random(f"{seed}/{kind}/{key}"), key))

        agreed = per("agreed", lambda rng, key: random_row(rng, self.size))
        self.table = per(
            "own", lambda rng, key: agreed[key[1]] if rng.random() < self.agreement else random_row(rng, self.size)
        )
        self.silent = per("silent", lambda rng, text: text and rng.random() < 0.12)
        self.broken = per("broken", lambda rng, text: text and rng.random() < 0.05)
        self.shorter = per("shorter", lambda rng, key: rng.choice([99, 99, 99, 1, 2, 3]))
        self.strange = per("strange", lambda rng, key: rng.randrange(self.size) if rng.random() < 0.2 else None)
        self.unreliable = rng.random() < 0.3
        self.settings = DecodingSettings.of(
            eta=rng.choice([0, 0, 0, 0.5, 1, 2, 3]),
            gamma=rng.choice([0.99, 0.5, 0.2, 1.0]),
            max_new_tokens=rng.choice([1, 2, 4, 7]),
            stop=rng.choice([("\n",), ("b",)]),
            slack=rng.choice([0.0, 2.0**-10, 0.05]),
            prompts=BARE,
        )
        self.top = rng.choice([None, None, 1, 2, 3])
        self.speculate = rng.choice([2, 3, 5, 12])

    def row(self, text: str, prefix: tuple[int, ...]) -> Sequence[float] | None:
        if self.broken[text]:
            return None
        if self.silent[text]:
            spelled = ABSTENTIONS[len(text) % 2]
            says = spelled[len(prefix)] if prefix == spelled[: len(prefix)] and len(prefix) < len(spelled) else 0
            return tuple(float(token == says) for token in range(self.size))
        return self.table[text, prefix]

    def server(self, speculate: int, **more: Any) -> SimulatedServer:
        if self.unreliable:
            more.setdefault("shorter", lambda *key: self.shorter[key])
            more.setdefault("written", lambda *key: self.strange[key])
        return SimulatedServer(self.row, self.size, speculate=speculate, top=self.top, **more)

    def answer(self, server: SimulatedServer) -> Any:
        groups = isolate([Passage(text, source=text) for text in self.passages], by="passage")
        try:
            return driven(decoding_plan("q", groups, self.settings, server.codec), DecodingPerformer(server))
        except ModelError as error:
            return str(error)

    def certificates(self, server: SimulatedServer) -> Any:
        passages = [Passage(text, source=text) for text in self.passages]
        question = Question.of("q", passages, ("a",), "metric", (0, 1, 2), max_model_calls=60, group_by="passage")
        try:
            found = decoding_run(question, self.settings, server, contains_answer).run()
        except ModelError as error:
            return str(error)
        return [(c.tau, c.certified, c.warnings, c.model_calls) for c in found]


def differing(seeds: range) -> list[int]:
    found = []
    for seed in seeds:
        slow, fast = (World(seed) for _ in range(2))
        one, several = slow.server(1), fast.server(fast.speculate)
        expected, answer = slow.answer(one), fast.answer(several)
        if answer != expected or (seed % 5 == 0 and fast.certificates(several) != slow.certificates(one)):
            found.append(seed)
    return found


def test_answers_and_certificates_are_those_of_token_by_token() -> None:
    """Rows abstain, fail, end and tie; lists are short; replies break off, or do not hold the best tokens."""
    assert differing(range(WORLDS)) == []
