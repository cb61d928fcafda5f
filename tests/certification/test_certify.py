"""The front door: `defense.certify`, its result, its limits, and local models."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence

import pytest

from robustrag_integrations import CallableModel, DecodingAggregation, KeywordAggregation, MajorityVoting, VanillaRAG
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.models.base import DecodingSession
from tests.helpers.scripted import BARE, ScriptedDecodingModel, ScriptedModel
from tests.helpers.worlds import graded, split

PASSAGES = [f"p{i}" for i in range(8)]


def keyword(says, final=lambda p: "paris" if "paris" in p else "rome", **settings) -> KeywordAggregation:
    chosen = {"alpha": 0.4, "beta": 9, **settings}
    return KeywordAggregation(ScriptedModel(says, final), extractor=split, prompts=BARE, **chosen)


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
    assert "corruption size 1 already" in (two.stopped or "")


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
    assert restored["schema"] == "robustrag/certification/1"
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
        (KeywordAggregation, "q", {"max_model_calls": 0}, "max_model_calls=0"),
        (KeywordAggregation, "q", {"sample": -1}, "sample=-1"),
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


def test_untouched_groups_that_failed_are_warned_of() -> None:
    found = keyword(lambda t: None if t == "p0" else "paris").certify("q", PASSAGES, "paris")
    assert any("failed on 1 of 7 untouched groups" in w for w in found.warnings)


def test_a_missed_quorum_is_a_possible_outcome() -> None:
    strict = keyword(lambda t: "paris", quorum=1.0).certify("q", PASSAGES, "paris")
    assert (strict.tau, strict.responses[0].text) == (0, None)
    assert "(no answer)" in strict.explain()


def test_a_final_call_that_fails_is_a_possible_outcome() -> None:
    def call(prompt: str) -> str:
        if prompt.startswith("kept["):
            raise RuntimeError("filtered")
        return "paris"

    defense = KeywordAggregation(CallableModel(call), extractor=split, prompts=BARE)
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


def peaked(text: str, prefix: tuple[int, ...]) -> Sequence[float]:
    """Two tokens that only a wide attacker could swap; the no-retrieval row prefers another one."""
    if len(prefix) == 3:
        return [1.0, 0, 0, 0]
    return [0, 0.7, 0.25, 0.05] if text else [0, 0, 0, 1.0]


def test_the_tree_branches_into_top_and_no_retrieval_tokens() -> None:
    defense = DecodingAggregation(ScriptedDecodingModel(peaked), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    found = defense.certify("q", PASSAGES, "a", metric=graded)
    assert {r.text for r in found.responses} == {"".join(t) for t in itertools.product("ac", repeat=3)}
    kinds = {node["kind"] for node in found.evidence["tree"] if len(node["prefix"]) < 3}
    assert kinds == {"either"}


def test_one_walk_serves_all_corruption_sizes() -> None:
    defense = DecodingAggregation(ScriptedDecodingModel(peaked), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    together = defense.certify("q", PASSAGES, "a", corruption_size=[1, 2], metric=graded)
    alone = [defense.certify("q", PASSAGES, "a", corruption_size=s, metric=graded) for s in (1, 2)]
    assert [c.tau for c in together] == [c.tau for c in alone]
    assert [{r.text for r in c.responses} for c in together] == [{r.text for r in c.responses} for c in alone]
    assert together[-1].model_calls == max(c.model_calls for c in alone)


def test_a_tree_over_the_limit_gives_up_the_largest_attacker_first_and_samples_only_when_asked() -> None:
    model = ScriptedDecodingModel(peaked)
    defense = DecodingAggregation(model, prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    limited = defense.certify("q", PASSAGES, "a", metric=graded, max_model_calls=6)
    assert (limited.tau, limited.certified, limited.estimate) == (0, False, None)
    sampled = defense.certify("q", PASSAGES, "a", metric=graded, max_model_calls=6, sample=30, seed=1)
    assert (sampled.tau, sampled.certified) == (0, False)
    assert sampled.estimate is not None
    assert sampled.estimate.value == defense.certify("q", PASSAGES, "a", metric=graded).tau
    assert "not a guarantee" in sampled.explain()


def test_a_monotone_metric_leaves_out_what_cannot_score_lower() -> None:
    class StartsWell:
        monotone, highest = True, 1.0
        __name__ = "starts well"

        def __call__(self, response: str, references: Sequence[str]) -> float:
            return float(response[:1] in "ac")

    defense = DecodingAggregation(ScriptedDecodingModel(peaked), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    pruned = defense.certify("q", PASSAGES, "a", metric=StartsWell())
    assert (pruned.tau, pruned.certified, pruned.complete) == (1, True, False)
    assert pruned.model_calls == 1


class NoFork(ScriptedDecodingModel):
    """A model whose sessions cannot be copied."""


class Forking(ScriptedDecodingModel):
    """A model whose sessions can."""

    def open_session(self, prompts, no_retrieval, max_new_tokens) -> DecodingSession:
        session = super().open_session(prompts, no_retrieval, max_new_tokens)
        return _with_fork(session)


def _with_fork(session: DecodingSession) -> DecodingSession:
    session.fork = lambda: _with_fork(copy.copy(session))  # type: ignore[method-assign]
    return session


def test_sessions_that_cannot_be_copied_are_replayed_with_the_same_result() -> None:
    results: list[Certification] = []
    for model in (NoFork(peaked), Forking(peaked)):
        defense = DecodingAggregation(model, prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
        results.append(defense.certify("q", PASSAGES, "a", metric=graded))
        opened = model.sessions
    assert opened == 1
    assert results[0].responses == results[1].responses


torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def local():
    from robustrag_integrations import LocalModel
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    return LocalModel(tiny_model("llama"), tiny_tokenizer(), max_context_tokens=24, max_new_tokens=4, chat=False)


def test_a_forked_local_session_gives_the_same_bits(local) -> None:
    from robustrag_integrations.prompts import Prompt

    prompts = [Prompt(f"text {i} ends", (5, 6)) for i in range(3)]
    session = local.open_session(prompts, Prompt("text"), 4)
    twin = session.fork()
    straight = [session.append(t) for t in (7, 9)]
    twin.append(11)
    again = local.open_session(prompts, Prompt("text"), 4).fork()
    forked = [again.append(t) for t in (7, 9)]
    for a, b in zip(straight, forked, strict=True):
        assert (a.groups == b.groups).all()
        assert (a.no_retrieval == b.no_retrieval).all()


def test_what_a_local_model_can_be_made_to_say_is_in_r(local) -> None:
    passages = [f"Fact {i}: paris" for i in range(6)]
    defense = DecodingAggregation(local, eta=3.0, max_new_tokens=3, stop=["zzz"])
    found = defense.certify("Where?", passages, "paris", metric=graded, max_model_calls=100)
    assert found.numerics["dtype"] == "float32"
    assert found.certified
    possible = {r.text for r in found.responses}
    for evil in ("london london", "", "Fact 9: paris", "x" * 300):
        for rank in (0, 3, 5):
            listed = [*passages[:rank], evil, *passages[rank:5]]
            text = defense.answer("Where?", listed).text
            assert found.unbounded or text in possible
    assert found.tau > 0 or found.unbounded


def test_keyword_certification_of_a_local_model_keeps_to_the_shapes_of_inference(local) -> None:
    asked: list[tuple[str, int]] = []
    original = local._generate

    def spied(prompts, role, *arguments):
        asked.append((role, len(prompts)))
        return original(prompts, role, *arguments)

    local._generate = spied
    try:
        defense = KeywordAggregation(local, extractor=lambda text: {"paris", "abc"[len(text) % 3]}, alpha=0.4)
        defense.certify("Where?", [f"Fact {i}: paris" for i in range(5)], "paris", metric=graded, max_model_calls=40)
    finally:
        del local._generate
    assert asked[:2] == [("isolated", 5), ("final", 1)]
    assert set(asked[1:]) == {("final", 1)}


def test_a_metric_that_fails_on_a_response_makes_the_certificate_undecided_and_not_the_run_fail() -> None:
    def strict(response: str, references: Sequence[str]) -> float:
        if "rome" in response:
            raise LookupError("who wrote rome?")
        return 1.0

    says = {f"p{i}": "rome" if i < 3 else "paris" for i in range(8)}
    defense = keyword(says, lambda p: "rome" if "rome" in p else "paris")
    none, one, two = defense.certify("q", PASSAGES, "paris", corruption_size=[0, 1, 2], metric=strict)
    assert (none.tau, none.certified) == (1.0, True)
    assert (one.tau, one.certified, two.tau, two.certified) == (0.0, False, 0.0, False)
    assert "the metric strict failed" in (one.stopped or "")
    assert "LookupError: who wrote rome?" in one.warnings[-1]
    assert two.stopped == one.stopped


def test_a_metric_that_fails_next_to_a_real_attack_hides_no_attack() -> None:
    def strict(response: str, references: Sequence[str]) -> float:
        if response == "paris":
            raise LookupError("no")
        return 0.0

    defense = keyword(lambda t: "paris" if t in ("p0", "p1", "p2") else "rome", alpha=0.4)
    found = defense.certify("q", PASSAGES, "paris", metric=strict)
    assert (found.tau, found.certified) == (0.0, True)


@pytest.mark.parametrize("score", [-1.0, float("nan"), "high", None])
def test_a_score_that_is_not_a_number_of_at_least_zero_proves_nothing(score: object) -> None:
    found = keyword(lambda t: "paris").certify("q", PASSAGES, "paris", metric=lambda response, references: score)
    assert (found.tau, found.certified) == (0.0, False)
