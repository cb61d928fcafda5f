"""The certificate of keyword aggregation: which final prompts are asked, when, and in which batches."""

from __future__ import annotations

from robustrag_integrations import CallableModel, KeywordAggregation
from tests.helpers.scripted import BARE, keyword_defense, split

PASSAGES = [f"p{i}" for i in range(8)]


def keyword(*says, **settings) -> KeywordAggregation:
    return keyword_defense(*says, **{"alpha": 0.4, "beta": 9, **settings})


def test_a_final_call_that_fails_is_a_possible_outcome() -> None:
    def call(prompt: str) -> str:
        if prompt.startswith("kept["):
            raise RuntimeError("filtered")
        return "paris"

    defense = KeywordAggregation(CallableModel(call), alpha=0.5, beta=5, extractor=split, prompts=BARE)
    found = defense.certify("q", PASSAGES, "paris")
    assert (found.tau, found.responses[0].text) == (0, None)


def test_the_likeliest_failure_is_asked_for_first() -> None:
    contested = " ".join(f"w{i}" for i in range(8))
    defense = keyword(
        lambda t: f"paris {contested}" if t in ("p0", "p1", "p2") else "paris",
        lambda p: "paris" if "w0" in p else "rome",
        alpha=0.5,
    )
    found = defense.certify("q", PASSAGES, "paris")
    assert (found.tau, found.certified) == (0, True)
    assert found.model_calls == 7 + 2  # of 256 keyword sets, none contested and all of them
    assert found.responses[0].cause.endswith(", ".join(sorted(f"w{i}" for i in range(8))))
