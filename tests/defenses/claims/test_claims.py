"""Long answers and lists from end to end: keyword aggregation and consensus count the same claims."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest

from robustrag_integrations import (
    CallableModel,
    ConsensusAggregation,
    KeywordAggregation,
    Passage,
    QuorumError,
    Response,
    VanillaRAG,
)
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.defenses.agreement.claims import certificate
from robustrag_integrations.defenses.agreement.claims.answer import ClaimAnswer
from robustrag_integrations.defenses.agreement.claims.rule import ClaimRule
from robustrag_integrations.defenses.agreement.linear_forms import Votes
from robustrag_integrations.defenses.registry import default_method
from robustrag_integrations.evaluation.score.schema import EVIDENCE, misfit
from robustrag_integrations.keywords.runs import ReplyKeys

BOTH = pytest.mark.parametrize("method", [ConsensusAggregation, KeywordAggregation])
RUST = ["Install rustup. Then run cargo new.", "First, install rustup.\nRun cargo build.", "You should install rustup",
        "1. Install rustup\n2. Run cargo new\n3. Run cargo build"]  # fmt: skip


def asked(
    method: Any, question: str, replies: Sequence[str], **settings: Any
) -> tuple[Any, RobustAnswer, list[Passage]]:
    def model(prompt: str) -> str:
        return next(reply for i, reply in enumerate(replies) if f"passage {i}." in prompt)

    defense = method(CallableModel(model, samples=False), **settings)
    passages = [Passage(f"passage {i}.", source=f"{i}.example") for i in range(len(replies))]
    return defense, defense.answer(question, passages), passages


@BOTH
def test_steps_stand_in_the_order_and_words_of_most_groups(method: Any) -> None:
    _, answer, _ = asked(method, "How do I install Rust?", RUST, task="long_form")
    assert answer.text == "Install rustup. Run cargo new. Run cargo build."
    assert [(c.support, c.radius, c.groups) for c in answer.claims] == [
        (4, 2, (0, 1, 2, 3)),
        (2, 0, (0, 3)),
        (2, 0, (1, 3)),
    ]
    assert answer.claims[1].origins == ("0.example", "3.example")
    assert (answer.radius, answer.model_calls, answer.dissent) == (0, 4, ())
    assert not any("otherwise" in warning for warning in answer.warnings)
    assert {g.status for g in answer.groups} == {"supports"}
    assert answer.groups[0].words == ("Install rustup.", "Then run cargo new.")
    assert RobustAnswer.from_dict(answer.to_dict()) == answer
    assert "Claim:    Install rustup (4 groups, radius 2: 0.example" in answer.explain()


def test_an_exception_is_not_torn_from_its_rule() -> None:
    rule = "Customer records are deleted after seven years, unless the customer is under legal hold."
    replies = [rule, f"- {rule}", "Customer records are deleted after 7 years unless the customer is under legal hold"]
    _, answer, _ = asked(ConsensusAggregation, "When are customer records deleted?", replies, task="long_form")
    assert answer.text == rule
    lie = "Customer records are deleted after seven years."
    _, answer, _ = asked(ConsensusAggregation, "When are customer records deleted?", [*replies, lie], task="long_form")
    assert answer.text == rule
    assert [left["text"] for left in answer.evidence["left_out"]] == [lie]


@BOTH
def test_two_halves_of_a_procedure_do_not_contradict_each_other(method: Any) -> None:
    halves = ["Mix flour and water.", "Bake for 40 minutes."]
    _, answer, _ = asked(method, "How do I bake bread?", halves, task="long_form")
    assert answer.abstained
    assert "no claim is made by 2 groups (min_support): 2 groups answered" in " ".join(answer.warnings)
    assert not any("contradict" in w or "otherwise" in w for w in answer.warnings)
    _, answer, _ = asked(method, "How do I bake bread?", halves, task="long_form", min_support=1)
    assert answer.text == "Mix flour and water. Bake for 40 minutes."
    assert [(c.radius, c.origins) for c in answer.claims] == [(0, ("0.example",)), (0, ("1.example",))]
    assert "min_support=1: any source alone can add a claim" in " ".join(answer.warnings)
    assert answer.for_prompt().abstained  # one source alone makes a claim of it


@BOTH
@pytest.mark.parametrize(
    ("min_support", "towns", "radius"),
    [(1, ["Kelford", "Ashby", "Dunholt", "Marrow"], 0), (2, ["Kelford", "Ashby"], 0), (3, ["Kelford"], 0), (5, [], 0)],
)
def test_a_list_is_the_union_of_items_with_enough_support(
    method: Any, min_support: int, towns: list[str], radius: int
) -> None:
    replies = [
        "Kelford, Ashby and Marrow",
        "- Kelford\n- Ashby",
        "The towns are Kelford and Dunholt",
        "I don't know",
        "Kelford",
    ]
    _, answer, _ = asked(method, "Which towns lie on the Lenn?", replies, task="list", min_support=min_support)
    assert [claim.text for claim in answer.claims] == towns
    assert answer.radius == radius
    assert answer.text == (
        "I don't know" if not towns else "\n".join(f"- {t}" for t in towns) if towns[1:] else towns[0]
    )
    assert answer.abstained == (not towns)


def test_the_default_method_answers_long_form_and_lists() -> None:
    assert default_method("long_form") == default_method("list") == "consensus"
    vanilla = VanillaRAG(
        CallableModel(lambda prompt: "Kelford\nAshby" if "one per line" in prompt else ""), task="list"
    )
    assert vanilla.answer("Which towns?", ["x"]).text == "Kelford\nAshby"


def test_our_prompts_ask_for_claims_and_prompts_of_ones_own_are_asked() -> None:
    prompts: list[str] = []
    for task in ("long_form", "list"):
        ConsensusAggregation(CallableModel(lambda p: prompts.append(p) or "x"), task=task).answer("Which?", ["here"])  # type: ignore[arg-type, func-returns-value]
    assert "one line for each fact or step" in prompts[0]
    assert "every answer that the text gives" in prompts[1]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (
            KeywordAggregation,
            {"task": "long_form", "alpha": 0.4},
            r"alpha=0.4 does nothing with task='long_form'.*spacy",
        ),
        (KeywordAggregation, {"task": "list", "final": "always"}, "final='always' does nothing"),
        (KeywordAggregation, {"task": "list", "extractor": "spacy"}, "leave extractor= out"),
        (KeywordAggregation, {"task": "list", "replies": "structured"}, "replies='structured' does nothing"),
        (ConsensusAggregation, {"task": "list", "share": 0.5}, "share=0.5 does nothing"),
        (ConsensusAggregation, {"task": "list", "min_support": 0}, "min_support=0"),
        (ConsensusAggregation, {"task": "poem"}, "task='poem'"),
    ],
)
def test_settings_that_mean_nothing_here_are_refused(method: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(CallableModel(str), **settings)


def test_weights_copies_and_a_minimum_radius_hold_for_claims() -> None:
    defense, answer, passages = asked(
        ConsensusAggregation, "Which?", ["Kelford"] * 2 + ["Ashby"], task="list", weights={"2.example": 3}
    )
    assert [(c.text, c.support, c.radius) for c in answer.claims] == [("Ashby", 3, 2), ("Kelford", 2, 0)]
    assert answer.radius_unit == "votes"
    _, answer, _ = asked(ConsensusAggregation, "Which?", ["Kelford"] * 4, task="list", min_radius=2)
    assert (answer.abstained, answer.claims, answer.evidence["radius"]) == (True, (), 1)
    assert [c.text for c in defense.answer("Which?", passages).claims] == ["Ashby", "Kelford"]


def test_of_a_cut_reply_the_lines_before_the_last_two_count() -> None:
    cut = Response("- Kelford\n- Ashby is open\n- Marrow\n- unless the", finish="length")
    whole = Response("- Kelford\n- Ashby is open\n- Marrow", finish="stop")
    model = CallableModel(lambda prompt: cut if "page 0" in prompt else whole, samples=False)
    pages = [Passage(f"page {i}", source=f"{i}.example") for i in range(3)]
    answer = ConsensusAggregation(model, task="list").answer("Which?", pages)
    assert [(c.text, c.support) for c in answer.claims] == [("Kelford", 3), ("Ashby is open", 3), ("Marrow", 2)]
    assert answer.groups[0].note == "cut at its limit of tokens; the lines before count"
    short = ConsensusAggregation(CallableModel(lambda prompt: Response("- Kel", finish="length")), task="list")
    assert short.answer("Which?", pages).abstained


NOTHING = ["", "  ", "...", "- \n- ", "?!", "**", "```\n```", "[]", "{}", "\u200b", "I don't know"]


@BOTH
@pytest.mark.parametrize("task", ["list", "long_form"])
@pytest.mark.parametrize(("groups", "replies"), [(0, ["Kelford"]), (1, NOTHING), (3, NOTHING)])
async def test_without_any_claim_there_is_no_answer(method: Any, task: Any, groups: int, replies: list[str]) -> None:
    for reply in replies:
        for early in [{}, {"stop_when_decided": True, "wave_size": 1}] if method is ConsensusAggregation else [{}]:
            defense, answer, passages = asked(method, "Which towns?", [reply] * groups, task=task, **early)
            stream = defense.stream("Which towns?", passages)
            assert "".join(stream) == answer.text == "I don't know"
            assert stream.answer == answer == await defense.aanswer("Which towns?", passages)
            assert (answer.abstained, answer.claims) == (True, ())
            found = defense.certify("Which towns?", passages, "Kelford", corruption_size=[0, 1])
            assert [each.tau for each in found] == [0, 0]


@BOTH
def test_without_a_reply_there_is_an_error(method: Any) -> None:
    def fail(prompt: str) -> str:
        raise OSError("no line")

    with pytest.raises(QuorumError, match="no line"):
        method(CallableModel(fail), task="list").answer("Which towns?", ["One.", "Two."])


async def test_streams_and_async_say_the_same() -> None:
    defense, answer, passages = asked(ConsensusAggregation, "How do I install Rust?", RUST, task="long_form")
    stream = defense.stream("How do I install Rust?", passages)
    assert "".join(stream) == answer.text
    assert stream.answer == answer == await defense.aanswer("How do I install Rust?", passages)


def test_it_stops_early_only_where_nothing_can_change() -> None:
    replies = ["Kelford"] * 5
    _, answer, _ = asked(ConsensusAggregation, "Which?", replies, task="list", stop_when_decided=True, wave_size=1)
    assert (answer.text, answer.evidence["decided_after"]) == ("Kelford", 4)  # the last one alone adds nothing


def test_many_claims_take_no_more_counting_than_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, leasts = [], Votes.leasts
    monkeypatch.setattr(Votes, "leasts", lambda self, *args: counted.append(1) or leasts(self, *args))  # type: ignore[func-returns-value]
    replies = ["\n".join(f"- Town {'x' * i}" for i in range(1, 101))] * 4
    _, answer, _ = asked(ConsensusAggregation, "Which?", replies, task="list")
    assert (len(answer.claims), answer.radius) == (100, 1)
    assert len(counted) < 10 * 100


def share_of_towns(response: str, references: Sequence[str]) -> float:
    """Facts found: the share of the references that stand in the response, none if a lie does."""
    return 0.0 if "LIE" in response else sum(r in response for r in references) / len(references)


@pytest.mark.parametrize("method", [ConsensusAggregation, KeywordAggregation])
def test_no_attack_scores_less_than_tau_or_leaves_the_sets(method: Any) -> None:
    """Every set of claims of every corrupted group, in place of every passage, on small worlds."""
    rng, said, attacks, promised = random.Random(3), ["Ashby", "Kelford", "Marrow"], 0, 0
    options = ["", *said[:2], "LIE", "Ashby, Kelford", "Ashby, Kelford, Marrow, LIE"]
    for _ in range(12):
        replies = [", ".join(t for t in said if rng.random() < 0.8) or "I don't know" for _ in range(rng.randint(3, 6))]
        settings = {"task": "list", "min_support": rng.randint(2, 3)}
        defense, _, passages = asked(method, "Which?", replies, **settings)
        for size in (1, 2):
            found = defense.certify(
                "Which?",
                passages,
                said[:2],
                corruption_size=size,
                metric=share_of_towns,
                top_k=len(replies),
                attack="modification",
            )
            promised += found.tau > 0
            known = {frozenset(r.text.replace("- ", "").split("\n")) for r in found.responses if r.text is not None}
            for evil in product(options, repeat=size):
                for first in range(len(replies) - size + 1):
                    now = [*replies[:first], *evil, *replies[first + size :]]
                    _, answer, _ = asked(method, "Which?", [r or "I don't know" for r in now], **settings)
                    attacks += 1
                    assert share_of_towns(answer.text, said[:2]) >= found.tau
                    if found.complete:
                        assert frozenset(answer.text.replace("- ", "").split("\n")) in known
    assert attacks > 500
    assert promised > 3


def test_the_brute_force_finds_a_certificate_that_forgets_contested_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "_subsets", lambda contested: iter([tuple(contested)]))
    with pytest.raises(AssertionError):
        test_no_attack_scores_less_than_tau_or_leaves_the_sets(ConsensusAggregation)


def test_no_replacement_within_the_radius_changes_the_claims_and_one_more_does() -> None:
    """The answer as a whole, one source alone included, against every replacement."""
    rng, options, positive = (
        random.Random(5),
        [None, frozenset("a"), frozenset("b"), frozenset("z"), frozenset("ab")],
        0,
    )
    for _ in range(80):
        said = [rng.choice([None, *options[1:2] * 4, *options]) for _ in range(rng.randint(1, 4))]
        rule = ClaimRule(rng.randint(1, 3))
        made = claims_of(said, rule)
        changed = {
            r: any(
                {w.key for w in claims_of(replaced(said, where, what), rule).kept} != {w.key for w in made.kept}
                for where in combinations(range(len(said)), r)
                for what in product(options, repeat=r)
            )
            for r in range(1, len(said) + 1)
        }
        radius = made.radius()
        assert not any(changed[r] for r in range(1, radius + 1)), (said, rule)
        if not made.is_alone:  # the radius of a sole source is 0, whatever its words
            assert radius == len(said) or changed[radius + 1], (said, rule)
        positive += radius > 0
    assert positive


def claims_of(said: Sequence[frozenset[str] | None], rule: ClaimRule) -> ClaimAnswer:
    replies = [None if k is None else ReplyKeys(k, None, frozenset(), {w: w for w in sorted(k)}) for k in said]
    return ClaimAnswer.of(replies, [""] * len(said), [1] * len(said), rule, "list")


def replaced(said: Sequence[Any], where: Sequence[int], what: Sequence[Any]) -> list[Any]:
    now = list(said)
    for place, reply in zip(where, what, strict=True):
        now[place] = reply
    return now


def test_one_source_alone_is_shown_as_such_and_kept_out_of_prompts() -> None:
    replies = ["Mix flour.\nSee https://evil.example/x.", "I don't know", "I don't know"]
    _, answer, _ = asked(ConsensusAggregation, "How do I bake bread?", replies, task="long_form")
    assert (answer.radius, answer.sole_source) == (0, "0.example")
    assert [c.radius for c in answer.claims] == [0] * len(answer.claims)
    assert "evil.example" not in answer.text
    assert answer.text.startswith("Mix flour.")
    assert answer.for_prompt().abstained


def test_of_a_sole_source_a_thousand_characters_are_shown() -> None:
    replies = ["\n".join(f"- Town{i} {'x' * 90}" for i in range(60)), "I don't know", "I don't know"]
    _, answer, _ = asked(ConsensusAggregation, "Which towns?", replies, task="list")
    assert answer.sole_source == "0.example"
    assert 900 < len(answer.text) < 1_050
    assert len(answer.claims) == 11
    assert answer.text.endswith("…")


HARVEST = "Article {}: The weather was fine in the north, where the harvest of Kelford began in {} places."


@BOTH
@pytest.mark.parametrize("task", ["list", "long_form"])
def test_a_claim_of_which_no_word_stands_in_its_groups_passages_does_not_count(method: Any, task: Any) -> None:
    passages = [Passage(HARVEST.format(i, i), source=f"{i}.example") for i in range(4)]
    model = CallableModel(lambda prompt: "Kelford\nBrezar", samples=False)
    defense = method(model, task=task)
    answer = defense.answer("Which towns?", passages)
    assert ([c.text for c in answer.claims], answer.radius) == (["Kelford"], 1)
    assert [t.tau for t in defense.certify("Which towns?", passages, "Kelford", corruption_size=[0, 1])] == [1, 1]
    assert [t.tau for t in defense.certify("Which towns?", passages, "Brezar", corruption_size=[0])] == [0]
    [told] = [warning for warning in answer.warnings if "no word stands" in warning]
    assert "4 of 4 groups" in told
    assert len(method(model, task=task, ungrounded="count").answer("Which towns?", passages).claims) == 2
    passages[0] = Passage("Brezar lies in the east, on the border, where the river Lenn begins.", source="0.example")
    model = CallableModel(lambda prompt: "Brezar", samples=False)
    answer = method(model, task=task).answer("Which towns?", passages)
    assert (answer.sole_source, [c.support for c in answer.claims]) == ("0.example", [1])


@pytest.mark.parametrize("code", ['["Kelford"]', "brezar --north=5", "Install `brezar`"])
def test_code_that_stands_in_the_passages_counts(code: str) -> None:
    passages = [Passage(f"Page {i}: to see the weather of the north, run `{code}` twice.") for i in range(3)]
    model = CallableModel(lambda prompt: f"```\n{code}\n```", samples=False)
    assert not ConsensusAggregation(model, task="long_form").answer("How do I see it?", passages).abstained


def test_too_many_contested_claims_are_given_up_or_sampled() -> None:
    replies = ["\n".join(f"- Town{i}" for i in range(20))] + ["Kelford"] * 4
    defense, _, passages = asked(ConsensusAggregation, "Which?", replies, task="list")
    [found] = defense.certify("Which?", passages, "Kelford", corruption_size=[1], attack="modification")
    assert (found.tau, found.certified) == (0.0, False)
    assert "the attacker decides on 20 claims" in (found.stopped or "")
    [found] = defense.certify("Which?", passages, "Kelford", corruption_size=[1], attack="modification", sample=5)
    assert (found.tau, found.certified, found.estimate.value) == (0.0, False, 1.0)
    [found] = defense.certify("Which?", passages, "Kelford", corruption_size=[2])
    assert found.unbounded
    assert "alone can have any claim kept" in (found.stopped or "")


def test_reports_show_claims_as_text() -> None:
    _, answer, _ = asked(ConsensusAggregation, "Which?", ["Kelford\n<b>x</b>"] + ["Kelford"] * 2, task="list")
    shown = answer._repr_html_()
    assert "Claims, each by its own count" in shown
    assert "left out" in shown
    assert "<b>x</b>" not in shown
    assert "a claim is kept from 2 groups on" in shown
    assert misfit({**answer.to_dict()["evidence"], "left_out": "x"}, EVIDENCE) is not None
    assert misfit(answer.to_dict()["evidence"], EVIDENCE) is None


def test_no_claim_outlives_the_quorum() -> None:
    _, answer, _ = asked(ConsensusAggregation, "Which towns lie on the Lenn?", ["Kelford"] * 5, task="list")
    assert (answer.radius, answer.claims[0].radius) == (1, 2)  # three failures of five leave no answer
    _, sure, _ = asked(ConsensusAggregation, "Which towns lie on the Lenn?", ["Kelford"] * 5, task="list", quorum=0)
    assert sure.claims[0].radius == 3
