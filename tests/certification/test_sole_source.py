"""Every attack on small worlds of sources that are silent, sure or unsure: sole sources and certificates."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.certify import text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.consensus import defense as certificate
from robustrag_integrations.defenses.consensus.defense import Outcome, consensus_certification_plan, consensus_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.keyword.defense import KeywordSettings, keyword_certification_plan, keyword_plan
from robustrag_integrations.grouping.passages import Passage, Source
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Ask, Reply, Request
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE, ScriptedModel, context_of
from tests.helpers.worlds import ConsensusModel, Move, drafted, shown, whole

QUESTION = "Who?"
LINK = "[Z](https://z.example)"
SAYS = ("Xylo", "xylo.", "Yew", "Yes", "Yes, all", "No", LINK, "I don't know", None)
MOVES = [*(Move(reply) for reply in SAYS), Move("Xylo", is_sure=False), Move("Yew", is_sure=False)]
CLEAN = [*MOVES, Move("Xylo"), *[Move("I don't know")] * 8, Move("Yew")]
CONSENSUS: list[Any] = [
    ConsensusSettings(prompts=BARE, quorum=0.0, min_support=least, agreement=agreement, unsure=counts)  # type: ignore[arg-type]
    for least, agreement, counts in [
        (1, "plurality", "count"),
        (2, "plurality", "count"),
        (2, "plurality", "abstain"),
        (3, "majority", "count"),
    ]
]
METHODS: list[Any] = CONSENSUS + [
    KeywordSettings(prompts=BARE, quorum=0.0, final=final, alpha=alpha, beta=beta, disagreement="abstain")  # type: ignore[arg-type]
    for final, alpha, beta in [("never", 0.5, 5), ("always", 0.3, 2), ("never", 1.0, 3)]
]


class Worlds:
    """Sources that mostly keep silent, and what an attacker may have them say."""

    def __init__(self, settings: Any, seed: str) -> None:
        self.rng, self.settings = random.Random(seed), settings
        self.moves = [self.rng.choice(CLEAN) for _ in range(self.rng.randint(1, 4))]
        self.sources = [_source(number) for number in range(len(self.moves))]

    def draft(self, moves: Sequence[Move], sources: Sequence[Source]) -> Draft | None:
        """What the method makes of it; None where all sources failed."""
        made = {source.text: move for source, move in zip(sources, moves, strict=True)}

        def perform(request: Request) -> Reply:
            if isinstance(request, Ask) and request.role == "final":
                return [Response(prompt.text) for prompt in request.prompts]
            if isinstance(request, Ask):
                return [made[context_of(prompt)].response for prompt in request.prompts]
            return None

        plan: Any = keyword_plan if isinstance(self.settings, KeywordSettings) else consensus_plan
        return drafted(plan(PlanInput(QUESTION, tuple(sources)), self.settings), perform)

    def answer(self) -> RobustAnswer | None:
        """The answer without an attack."""
        draft = self.draft(self.moves, self.sources)
        return None if draft is None else whole(draft, self.sources)

    def text(self, moves: Sequence[Move], sources: Sequence[Source]) -> str | None:
        draft = self.draft(moves, sources)
        return None if draft is None else shown(draft.answer)

    def attacks(self, radius: int) -> Iterator[list[Move]]:
        """What all sources do after so many of them were replaced."""
        for size in range(1, min(radius, len(self.sources)) + 1):
            for chosen in itertools.combinations(range(len(self.sources)), size):
                for new in itertools.product(MOVES, repeat=size):
                    moves = list(self.moves)
                    for place, move in zip(chosen, new, strict=True):
                        moves[place] = move
                    yield moves

    def certificates(self, corrupted: int) -> Certification:
        """Of the sources as they are, beside which so many passages are put."""
        made = {source.text: move for source, move in zip(self.sources, self.moves, strict=True)}
        question = Question(
            QUESTION,
            tuple(source.passages[0] for source in self.sources),
            ("Xylo",),
            "metric",
            (corrupted,),
            group_by="passage",
            top_k=len(self.sources) + corrupted,
        )
        if isinstance(self.settings, KeywordSettings):
            plan = keyword_certification_plan(question, self.settings)
            model = ScriptedModel(lambda text: made[text].reply, lambda text: text)
        else:
            plan, model = consensus_certification_plan(question, self.settings), ConsensusModel(made.__getitem__)
        return text_run("method", question, plan, model, lambda *_: 1.0, {}).run()[0]


def _source(number: int) -> Source:
    return Source(number, (Passage(f"p{number}", id=f"p{number}", origin=f"s{number}"),))


def radius_violations(settings: Any, worlds: int) -> tuple[list[Any], int, int]:
    """Attacks within the radius that change the answer; how many there were; and how many answers were sole ones."""
    broken, tried, alone = [], 0, 0
    for seed in range(worlds):
        world = Worlds(settings, f"{settings.as_dict()}/{seed}")
        clean = world.answer()
        if clean is None:
            continue
        alone += clean.sole_source is not None
        for moves in world.attacks(clean.radius):
            tried += 1
            text = world.text(moves, world.sources)
            if text is None or not same(text, shown(clean)):
                broken.append((settings.as_dict(), world.moves, clean.radius, moves, clean.text, text))
    return broken, tried, alone


def certificate_violations(settings: Any, worlds: int) -> tuple[list[Any], int, int]:
    """Attacks outside R; how many there were; and how many certificates are bounded."""
    broken, tried, bounded = [], 0, 0
    for seed in range(worlds):
        world = Worlds(settings, f"{settings.as_dict()}/{seed}")
        for corrupted in (0, 1, 2):
            found = world.certificates(corrupted)
            if not found.complete:
                continue
            bounded += corrupted > 0
            texts = {response.text for response in found.responses}
            for new in itertools.product(MOVES, repeat=corrupted):
                tried += 1
                added = [_source(9 + number) for number in range(corrupted)]
                text = world.text([*world.moves, *new], [*world.sources, *added])
                if text not in texts:
                    broken.append((settings.as_dict(), world.moves, new, texts, text))
    return broken, tried, bounded


def test_no_attack_within_the_radius_changes_an_answer() -> None:
    found = [radius_violations(settings, 250) for settings in METHODS]
    assert [broken for broken, _, _ in found if broken] == []
    assert sum(tried for _, tried, _ in found) > 350
    assert sum(alone for _, _, alone in found) > 80


def test_no_attack_causes_a_text_outside_the_certificate() -> None:
    found = [certificate_violations(settings, 200 if settings in CONSENSUS else 40) for settings in METHODS]
    assert [broken for broken, _, _ in found if broken] == []
    assert sum(tried for _, tried, _ in found) > 1_000
    assert sum(bounded for _, _, bounded in found) > 50


def test_a_sole_source_that_is_taken_for_an_agreed_answer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outcome, "radius", lambda self, pending=0, verbatim=False: 1 if self.text else 0)
    assert any(radius_violations(settings, 40)[0] for settings in CONSENSUS)


def test_a_certificate_that_forgets_the_only_source_heard_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = certificate.possible_texts

    def mistaken(readings: Any, corrupted: int, settings: Any) -> set[str]:
        try:
            return real(readings, corrupted, settings)
        except certificate.Unbounded:
            return {certificate.ABSTENTION}

    monkeypatch.setattr(certificate, "possible_texts", mistaken)
    assert any(certificate_violations(settings, 20)[0] for settings in CONSENSUS)
