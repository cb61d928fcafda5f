"""Every attack on small worlds in which groups fall silent: what is shown of a sole source."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification import Certification
from robustrag_integrations.certification.certify import text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.agreement import plurality
from robustrag_integrations.defenses.consensus import certificate as consensus_certificate
from robustrag_integrations.defenses.consensus.certificate import consensus_certification_plan
from robustrag_integrations.defenses.consensus.outcome import Outcome
from robustrag_integrations.defenses.consensus.plan import consensus_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.errors import ModelError
from robustrag_integrations.grouping.passages import Passage, PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE, ScriptedModel
from tests.helpers.worlds import driven, text_performer

QUESTION = "Who q?"  # "q" is an echo
LINK = "[Z](https://z.example)"
MOVES: list[str | None] = ["x", "X.", "x y", "y", "z", "q", LINK, "I don't know", None]  # of a corrupted group
REPLIES: list[str | None] = ["x", "x", "x y", "X.", "y", "q", LINK, *["I don't know"] * 6, None]

METHODS: list[Any] = [
    *(
        ConsensusSettings.of(prompts=BARE, quorum=0.0, min_support=least, agreement=agreement, disagreement="abstain")
        for least, agreement in [(1, "plurality"), (2, "plurality"), (3, "plurality"), (2, "majority")]
    ),
    *(
        KeywordSettings.of(prompts=BARE, quorum=0.0, final=final, alpha=alpha, beta=beta, disagreement="abstain")
        for final, alpha, beta in [("never", 0.5, 5), ("always", 0.3, 2), ("never", 1.0, 3)]
    ),
]


class Worlds:
    """Groups that mostly keep silent, and what an attacker may have them say."""

    def __init__(self, settings: Any, seed: str, *, weighted: bool = False) -> None:
        self.rng, self.settings = random.Random(seed), settings
        self.replies = [self.rng.choice(REPLIES) for _ in range(self.rng.randint(1, 4))]
        weights = [self.rng.choice([1, 2, 3]) if weighted else 1 for _ in self.replies]
        self.groups = [_group(number, weight) for number, weight in enumerate(weights)]

    def answer(self, replies: Sequence[str | None], groups: Sequence[PassageGroup]) -> RobustAnswer | None:
        """The answer; None where all groups failed."""
        try:
            return self._answer(replies, groups)
        except ModelError:
            return None

    def text(self, replies: Sequence[str | None], groups: Sequence[PassageGroup]) -> str | None:
        answer = self.answer(replies, groups)
        return None if answer is None else answer.text

    def _answer(self, replies: Sequence[str | None], groups: Sequence[PassageGroup]) -> RobustAnswer:
        said = {group.text: reply for group, reply in zip(groups, replies, strict=True)}
        perform = text_performer({}, said, _Echo())
        if isinstance(self.settings, KeywordSettings):
            return driven(keyword_plan(QUESTION, groups, self.settings, rules=VoteRules()), perform)
        return driven(consensus_plan(QUESTION, groups, self.settings, rules=VoteRules()), perform)

    def attacks(self, radius: int) -> Iterator[tuple[list[str | None], list[PassageGroup]]]:
        """All replies, and the groups, after groups with so many votes in all were replaced."""
        places = range(len(self.groups))
        for size in range(1, len(self.groups) + 1):
            for chosen in itertools.combinations(places, size):
                if sum(self.groups[place].weight for place in chosen) <= radius:
                    for moves in itertools.product(MOVES, repeat=size):
                        replies = list(self.replies)
                        for place, said in zip(chosen, moves, strict=True):
                            replies[place] = said
                        yield replies, self.groups

    def certificates(self, corrupted: int) -> Certification:
        """Of the groups as they are, beside which so many passages are put."""
        said = {group.text: reply for group, reply in zip(self.groups, self.replies, strict=True)}
        question = Question.of(
            QUESTION,
            [group.passages[0] for group in self.groups],
            ("x",),
            "metric",
            [corrupted],
            group_by="passage",
            top_k=len(self.groups) + corrupted,
        )
        keyword = isinstance(self.settings, KeywordSettings)
        plan_of: Any = keyword_certification_plan if keyword else consensus_certification_plan
        model = ScriptedModel(said.__getitem__, lambda text: text)
        return text_run("method", question, plan_of(question, self.settings), model, lambda *_: 1.0, {}).run()[0]


class _Echo(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return key


def _group(number: int, weight: int = 1) -> PassageGroup:
    text = f"p{number}"
    return PassageGroup(number, (Passage(text, id=f"p{number}", source=f"s{number}"),), weight=weight)


def radius_violations(settings: Any, worlds: int, *, weighted: bool) -> tuple[list[Any], int, int]:
    """Attacks within the radius that change the answer; how many there were; and how many answers were sole ones."""
    broken, tried, alone = [], 0, 0
    for seed in range(worlds):
        world = Worlds(settings, f"{settings.as_dict()}/{weighted}/{seed}", weighted=weighted)
        clean = world.answer(world.replies, world.groups)
        if clean is None:
            continue
        alone += clean.sole_source is not None
        for replies, groups in world.attacks(clean.radius):
            tried += 1
            text = world.text(replies, groups)
            if text is None or not same(text, clean.text):
                broken.append((settings.as_dict(), world.replies, clean.radius, replies, clean.text, text))
    return broken, tried, alone


def certificate_violations(settings: Any, worlds: int) -> tuple[list[Any], int, int]:
    """Attacks outside R; how many there were; and how many certificates are bounded."""
    broken, tried, bounded = [], 0, 0
    for seed in range(worlds):
        world = Worlds(settings, f"{settings.as_dict()}/{seed}")
        for corrupted in (0, 1, 2):
            certificate = world.certificates(corrupted)
            if not certificate.complete:
                continue
            bounded += corrupted > 0
            texts = {response.text for response in certificate.responses}
            for moves in itertools.product(MOVES, repeat=corrupted):
                tried += 1
                added = [_group(9 + number) for number in range(corrupted)]
                text = world.text([*world.replies, *moves], [*world.groups, *added])
                if text not in texts:
                    broken.append((settings.as_dict(), world.replies, moves, texts, text))
    return broken, tried, bounded


@pytest.mark.parametrize("weighted", [False, True])
def test_no_attack_within_the_radius_changes_an_answer(weighted: bool) -> None:
    found = [radius_violations(settings, 30 if weighted else 110, weighted=weighted) for settings in METHODS]
    assert [broken for broken, _, _ in found if broken] == []
    assert sum(tried for _, tried, _ in found) > 200
    assert sum(alone for _, _, alone in found) > 40


def test_no_attack_causes_a_text_outside_the_certificate() -> None:
    found = [certificate_violations(settings, 40) for settings in METHODS]
    assert [broken for broken, _, _ in found if broken] == []
    assert sum(tried for _, tried, _ in found) > 1_000
    assert sum(bounded for _, _, bounded in found) > 50


def a_sole_source_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    real = plurality.Count.radius
    monkeypatch.setattr(plurality.Count, "radius", lambda self, *a: real(self, *a) + (self.winner is None))
    monkeypatch.setattr(Outcome, "radius", lambda self, *a, **k: self.count.radius(*a))


def test_an_error_planted_in_radii_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    a_sole_source_holds(monkeypatch)
    assert any(radius_violations(settings, 60, weighted=True)[0] for settings in METHODS)


def test_an_error_planted_in_certificates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = consensus_certificate.possible_texts
    monkeypatch.setattr(
        consensus_certificate,
        "possible_texts",
        lambda readings, m, settings: set(sorted(real(readings, m, settings))[:1]),
    )
    assert any(certificate_violations(settings, 40)[0] for settings in METHODS)
