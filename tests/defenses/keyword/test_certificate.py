"""The certificate of keyword aggregation: which final prompts are asked, when, and in which batches."""

from __future__ import annotations

from robustrag_integrations import CallableModel, KeywordAggregation
from tests.helpers.scripted import BARE, keyword_defense, split
from tests.helpers.worlds import graded

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


def test_keyword_certification_of_a_local_model_keeps_to_the_shapes_of_inference(local) -> None:
    asked: list[tuple[str, int]] = []
    original = local.generate

    def spied(prompts, role, *arguments):
        asked.append((role, len(prompts)))
        return original(prompts, role, *arguments)

    local.generate = spied
    try:
        extractor = lambda text: {"paris", "abc"[len(text) % 3]}  # noqa: E731
        defense = KeywordAggregation(local, extractor=extractor, alpha=0.4, cut_replies="count")
        defense.certify("Where?", [f"Fact {i}: paris" for i in range(5)], "paris", metric=graded, max_model_calls=40)
    finally:
        del local.generate
    assert set(asked) == {("isolated", 5)}
