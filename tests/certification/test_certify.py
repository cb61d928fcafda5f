"""What every `defense.certify` does: its result, its sizes, its refusals, and metrics that fail."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from robustrag_integrations import CallableModel, DecodingAggregation, KeywordAggregation, MajorityVoting, VanillaRAG
from tests.helpers.scripted import BARE, ScriptedDecodingModel, ScriptedModel, keyword_defense, split
from tests.helpers.worlds import graded

PASSAGES = [f"p{i}" for i in range(8)]


def keyword(*says, **settings) -> KeywordAggregation:
    return keyword_defense(*says, **{"alpha": 0.4, "beta": 9, **settings})


def test_a_majority_is_certified_and_its_responses_are_listed() -> None:
    found = keyword(lambda t: "paris rome" if t in ("p0", "p1") else "paris").certify(
        "q", PASSAGES, ["Paris", "Lutetia"]
    )
    assert (found.tau, found.certified, found.complete, found.stopped) == (1.0, True, True, None)
    assert {r.text for r in found.responses} == {"paris"}
    assert found.settings["extractor"].endswith("split (unhashed)")
    assert (found.cases, found.corruption_size, found.attack) == (1, 1, "injection")
    assert found.evidence["always_retained"] == ["paris"]


def test_larger_attackers_share_the_calls_of_smaller_ones() -> None:
    defense = keyword(lambda t: "paris rome" if t in ("p0", "p1", "p2") else "paris", alpha=0.5)
    sizes = defense.certify("q", PASSAGES, "paris", corruption_size=[3, 1, 2, 0])
    assert [c.corruption_size for c in sizes] == [0, 1, 2, 3]
    taus = [c.tau for c in sizes]
    assert taus == sorted(taus, reverse=True)
    alone = sum(defense.certify("q", PASSAGES, "paris", corruption_size=s).model_calls for s in (0, 1, 2, 3))
    assert sizes[-1].model_calls < alone / 2
    for size, shared in zip((0, 1, 2, 3), sizes, strict=True):
        assert defense.certify("q", PASSAGES, "paris", corruption_size=size).tau == shared.tau


def test_a_size_that_fails_settles_the_larger_ones_without_calls() -> None:
    defense = keyword(lambda t: "paris" if t in ("p0", "p1", "p2") else "rome", alpha=0.4)
    one, two = defense.certify("q", PASSAGES, "paris", corruption_size=[1, 2])
    assert (one.tau, two.tau) == (0, 0)
    assert "with 1 corrupted" in (two.stopped or "")


async def test_async_gives_the_same_certificates() -> None:
    def say(prompt: str) -> str:
        return "paris"

    async def asay(prompt: str) -> str:
        return "paris"

    plain = KeywordAggregation(CallableModel(say), extractor=split)
    other = KeywordAggregation(CallableModel(async_fn=asay, name=plain.model.description), extractor=split)
    assert (await other.acertify("q", PASSAGES, "paris")).tau == plain.certify("q", PASSAGES, "paris").tau == 1
    model = ScriptedDecodingModel(lambda text, prefix: [0, 1] if not prefix else [1, 0])
    decoding = DecodingAggregation(model, prompts=BARE)
    assert await decoding.acertify("q", PASSAGES, "a") == decoding.certify("q", PASSAGES, "a")
    assert decoding.certify("q", PASSAGES, "a").tau == 1


def test_a_result_is_json_and_shows_hostile_text_harmlessly() -> None:
    defense = keyword(lambda t: "paris", lambda p: "paris\x1b[31m\u202e")
    found = defense.certify("q", PASSAGES, "paris", metric=graded)
    restored = json.loads(json.dumps(found.to_dict()))
    assert restored["schema"] == "robustrag/certification/3"
    assert restored["tau"] == found.tau
    assert restored["responses"][0]["cause"].startswith("retained:")
    shown = found.explain()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "proven" in shown


@pytest.mark.parametrize(
    ("make", "query", "arguments", "message"),
    [
        (VanillaRAG, "q", {}, "VanillaRAG cannot be certified"),
        (KeywordAggregation, " ", {}, "query is empty"),
        (KeywordAggregation, "q", {"corruption_size": -1}, "corruption_size=-1"),
        (KeywordAggregation, "q", {"corruption_size": b"1"}, "corruption_size=b'1' must be a whole number"),
        (KeywordAggregation, "q", {"corruption_size": [[1]]}, "corruption_size=.1. must be a whole number"),
        (KeywordAggregation, "q", {"max_model_calls": 0}, "max_model_calls=0"),
        (KeywordAggregation, "q", {"metric": "f1"}, "metric must be a function"),
        (KeywordAggregation, "q", {"choices": ["a", "b"]}, "does not take choices"),
        (MajorityVoting, "q", {}, "needs choices"),
    ],
)
def test_senseless_requests_are_refused_by_name(make, query, arguments, message) -> None:
    defense = make(ScriptedModel(lambda t: "paris"))
    with pytest.raises((TypeError, ValueError), match=message):
        defense.certify(query, PASSAGES, "paris", **arguments)


def test_a_model_that_samples_is_refused() -> None:
    defense = KeywordAggregation(CallableModel(lambda p: "paris", samples=True), extractor=split)
    with pytest.raises(ValueError, match="the model samples"):
        defense.certify("q", PASSAGES, "paris")


def test_untouched_sources_that_failed_are_warned_of() -> None:
    found = keyword(lambda t: None if t == "p0" else "paris").certify("q", PASSAGES, "paris")
    assert any("1 of 7 sources failed" in w for w in found.warnings)
    assert any("fails on the same untouched sources again" in w for w in found.warnings)


def test_a_missed_quorum_is_a_possible_outcome() -> None:
    strict = keyword(lambda t: "paris", quorum=1.0).certify("q", PASSAGES, "paris")
    assert (strict.tau, strict.responses[0].text) == (0, None)
    assert "(no answer)" in strict.explain()


def test_a_metric_that_fails_on_a_response_scores_it_0_with_a_warning() -> None:
    def strict(response: str, references: Sequence[str]) -> float:
        if "rome" in response:
            raise LookupError("who wrote rome?")
        return 1.0

    says = {f"p{i}": "rome" if i < 3 else "paris" for i in range(8)}
    defense = keyword(says, lambda p: "rome" if "rome" in p else "paris")
    none, one = defense.certify("q", PASSAGES, "paris", corruption_size=[0, 1], metric=strict)
    assert (none.tau, one.tau) == (1.0, 0.0)
    assert any("LookupError: who wrote rome?" in warning for warning in one.warnings)


@pytest.mark.parametrize("score", [-1.0, float("nan"), "high", None])
def test_a_score_that_is_not_a_number_of_at_least_zero_proves_nothing(score: object) -> None:
    found = keyword(lambda t: "paris").certify("q", PASSAGES, "paris", metric=lambda response, references: score)
    assert found.tau == 0.0
