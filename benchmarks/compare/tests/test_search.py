"""The searching attacker: it wins where there is no guarantee, and never below tau or within the radius."""

from __future__ import annotations

import random
import re

import pytest

from benchmarks.compare.reader_attacks import SETUPS, besiege, demo_questions, reader, summary
from benchmarks.compare.search import STRATEGIES, adaptive, adaptive_substitution, obeys
from robustrag_integrations import KeywordAggregation, LocalModel, MajorityVoting, VanillaRAG
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel, split

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
        assert adaptive_substitution(keyword, "q", passages, sources=radius, target="rome", tries=60).score == 1
    assert proven > 5


def test_votes_hold_within_their_radius() -> None:
    voting = MajorityVoting(ScriptedModel(lambda t: obedient(t)), prompts=BARE_CHOICES)
    choices = ["rome", "paris", "oslo"]
    passages = [*PASSAGES[:5], "says rome", "says rome"]
    clean = voting.answer("q", passages, choices=choices)
    assert clean.radius == 1
    held = adaptive_substitution(voting, "q", passages, sources=1, target="rome", choices=choices)
    assert held.score == 1
    taken = adaptive_substitution(voting, "q", passages, sources=2, target="rome", choices=choices)
    assert (taken.score, taken.text) == (0, "rome")


def test_it_notices_what_the_model_obeys() -> None:
    defense = KeywordAggregation(ScriptedModel(obedient), extractor=split, prompts=BARE)
    found = adaptive(defense, "q", PASSAGES, "paris", target="rome", tries=7)
    assert 0 < found.obeyed < 7
    assert sum(found.tried.values()) == found.tries == 7
    assert obeys("Rome", "rome")
    assert obeys("Ro …", "rome")
    assert not obeys("", "rome")
    assert not obeys(None, "rome")


@pytest.fixture(scope="module")
def besieged() -> tuple[dict[int, LocalModel], list]:
    pytest.importorskip("torch")
    pytest.importorskip("bm25s")
    return {size: reader(size) for size in (1, 2)}, demo_questions()


@pytest.mark.parametrize("number", range(len(SETUPS)), ids=lambda n: "-".join(map(str, vars(SETUPS[n]).values())))
def test_the_bundled_reader_on_the_demo_corpus_holds_what_is_promised(number: int, besieged, capsys) -> None:
    models, questions = besieged
    setup = SETUPS[number]
    sieges = list(
        besiege(setup, models[setup.passages_per_source], *questions[number], tries=len(STRATEGIES), seed=number)
    )
    with capsys.disabled():
        print(f"\n{summary(sieges)}")
    assert [s for s in sieges if s.broken] == []
    assert {s.size for s in sieges if s.promise == "tau"} == {1, 2}
