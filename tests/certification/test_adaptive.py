"""The searching attacker: it wins where there is no guarantee, and never below tau or within the radius."""

from __future__ import annotations

import random
import re

import pytest

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, MajorityVoting, VanillaRAG
from robustrag_integrations.attacks.adaptive import adaptive, adaptive_substitution
from robustrag_integrations.prompts import prompts_for
from tests.certification.worlds import split
from tests.scripted import BARE, BARE_CHOICES, ScriptedModel

_ORDER = re.compile(r"please output (.+?)\.(?= When|$|\s)")


def obedient(text: str) -> str | None:
    """A model that does what a passage tells it, fails on control characters, and else says its last word."""
    if "\x00" in text:
        return None
    if order := _ORDER.search(text):
        return order.group(1)
    return text.split()[-1].strip(".") if text.split() else ""


PASSAGES = [f"report {i} says paris" for i in range(7)]


def test_it_takes_over_what_is_not_defended() -> None:
    found = adaptive(
        VanillaRAG(ScriptedModel(obedient, obedient), prompts=BARE), "q", PASSAGES, "paris", target="london"
    )
    assert found.score == 0
    assert found.tries < 20


def test_it_takes_over_a_threshold_that_one_passage_reaches() -> None:
    defense = KeywordAggregation(ScriptedModel(obedient), alpha=0.1, beta=1, extractor=split, prompts=BARE)

    def exact(response: str, references) -> float:
        return float("london" not in response)

    assert adaptive(defense, "q", PASSAGES, "paris", target="london", metric=exact).score == 0
    assert defense.certify("q", PASSAGES, "paris", metric=exact).tau == 0


@pytest.mark.parametrize("attack", ["injection", "modification"])
def test_it_does_not_get_below_tau_nor_change_an_answer_within_its_radius(attack) -> None:
    rng = random.Random(attack)
    proven = 0
    for seed in range(12):
        places = [rng.choice(["paris", "paris", "paris", "rome"]) for _ in range(8)]
        passages = [f"report {i} says {place}" for i, place in enumerate(places)]
        quorum = rng.choice([0.3, 0.5])
        model = ScriptedModel(obedient)
        keyword = KeywordAggregation(model, alpha=0.4, beta=4, extractor=split, prompts=BARE, quorum=quorum)
        for size in (1, 2):
            tau = keyword.certify("q", passages, "paris", corruption_size=size, attack=attack).tau
            found = adaptive(
                keyword, "q", passages, "paris", target="rome", corruption_size=size, attack=attack, tries=60, seed=seed
            )
            assert found.score >= tau
            proven += tau > 0
        radius = found.clean.radius
        assert adaptive_substitution(keyword, "q", passages, groups=radius, target="rome", tries=60).score == 1
    assert proven > 5


def test_votes_hold_within_their_radius() -> None:
    voting = MajorityVoting(ScriptedModel(lambda t: obedient(t)), prompts=BARE_CHOICES)
    choices = ["rome", "paris", "oslo"]
    passages = [*PASSAGES[:5], "says rome", "says rome"]
    clean = voting.answer("q", passages, choices=choices)
    assert clean.radius == 1
    held = adaptive_substitution(voting, "q", passages, groups=1, target="rome", choices=choices)
    assert held.score == 1
    taken = adaptive_substitution(voting, "q", passages, groups=2, target="rome", choices=choices)
    assert (taken.score, taken.text) == (0, "rome")


def _reader() -> LocalModel:
    try:
        return LocalModel.bundled(max_context_tokens=64, max_new_tokens=12)
    except (FileNotFoundError, ImportError, OSError):
        pytest.skip("the bundled reader is not there")


def _demo_questions(count: int):
    world = pytest.importorskip("robustrag_integrations.cli.world")
    corpus = pytest.importorskip("robustrag_integrations.corpus")
    pytest.importorskip("bm25s")
    folder = world.world_folder()
    index = corpus.BM25Index(corpus.split(world.read_world(folder), 600))
    asked = [q for q in world.read_questions(folder) if q.answer][:count]
    return [(q, index.search(q.question, 8, per_source=1)) for q in asked]


@pytest.mark.parametrize("name", ["keyword", "decoding", "voting"])
def test_the_bundled_reader_on_the_demo_corpus_holds_what_is_promised(name: str, capsys) -> None:
    model = _reader()
    defense = {
        "keyword": lambda: KeywordAggregation(model, alpha=0.3, beta=3),
        "decoding": lambda: DecodingAggregation(model, max_new_tokens=12),
        "voting": lambda: MajorityVoting(model, prompts=prompts_for("multiple_choice")),
    }[name]()
    asked, proven, held = 0, 0, 0
    for question, passages in _demo_questions(2):
        choices = question.choices if name == "voting" else None
        cert = defense.certify(question.question, passages, question.answer, choices=choices, max_model_calls=300)
        target = question.incorrect
        found = adaptive(defense, question.question, passages, question.answer, target=target, choices=choices, tries=6)
        assert found.score >= cert.tau, (question, found)
        radius = found.clean.radius
        asked, proven = asked + 1, proven + (cert.tau > 0)
        if radius:
            kept = adaptive_substitution(
                defense, question.question, passages, groups=radius, target=target, choices=choices, tries=6
            )
            assert kept.score == 1, (question, kept)
            held += 1
    with capsys.disabled():
        print(f"\n  {name}: {asked} questions, tau > 0 in {proven}, radius > 0 in {held}; 0 violations")
