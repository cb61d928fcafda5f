"""Where the paper's pseudocode, read literally, would certify something false: one test per place.

Each test writes the literal reading down, lets it make its claim, and shows a run of the real inference that breaks it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest

from robustrag_integrations import DecodingAggregation, MajorityVoting
from robustrag_integrations.defenses.decoding.token_choice import ONE, TokenChoice, possible_tokens
from robustrag_integrations.defenses.keyword.defense import keyword_span
from robustrag_integrations.defenses.keyword.threshold import Threshold
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedDecodingModel, ScriptedModel, keyword_defense
from tests.helpers.worlds import graded


def literal_retained_sets(sets, corrupted, alpha, beta, counts_of_attackers=None) -> list[frozenset[str]]:
    """Algorithm 3, lines 1 to 15, as written; with repeats."""
    counts = Counter(w for s in sets if s is not None for w in s)
    n = sum(s is not None for s in sets)
    found = []
    for effective in counts_of_attackers or range(corrupted + 1):
        mu = min(alpha * (n + effective), beta)
        always = [w for w, c in counts.items() if c >= mu]
        contested = [w for w, c in counts.items() if mu > c >= mu - effective]
        for size in range(len(contested) + 1):
            found += [frozenset((*always, *chosen)) for chosen in itertools.combinations(contested, size)]
    return found


def test_1_words_that_only_the_attacker_says_are_looked_at() -> None:
    passages = [f"p{i}" for i in range(5)]
    says = {**dict.fromkeys(passages, "paris"), "evil": "london"}
    defense = keyword_defense(says, lambda p: "london" if "london" in p else "paris", alpha=0.2, beta=9)
    claimed = literal_retained_sets([{"paris"}] * 4, 1, 0.2, 9)
    assert set(claimed) == {frozenset({"paris"})}
    assert defense.answer("q", ["evil", *passages[:4]]).text == "london"
    found = defense.certify("q", passages, "paris")
    assert (found.tau, found.unbounded, found.certified) == (0, True, True)
    assert "any word" in (found.stopped or "")


def test_2_one_power_set_covers_all_effective_counts() -> None:
    rng = random.Random(5)
    spared = 0
    for _ in range(300):
        sets = [rng.choice([None, {"a"}, {"a", "b"}, {"b", "c"}, {"a", "c"}, {"d"}]) for _ in range(rng.randint(2, 9))]
        corrupted, alpha, beta = rng.randint(1, 3), rng.choice([0.25, 0.5, 0.75]), rng.randint(2, 6)
        span = keyword_span(sets, corrupted, Threshold.of(alpha, beta))
        ours = [frozenset(s) for s in span.sets()]
        literal = literal_retained_sets(sets, corrupted, alpha, beta)
        assert len(ours) == len(set(ours))
        assert set(literal) <= set(ours)
        spared += len(literal) - len(ours)
    assert spared > 0


def test_3_no_keyword_at_all_is_an_abstention_and_no_final_call() -> None:
    passages = ["p1", "p2", "p3", "p4"]
    says = dict(zip(passages, ["a", "a", "b", "c"], strict=True))
    defense = keyword_defense({**says, "evil": "x"}, lambda p: "right", alpha=0.6, beta=9, disagreement="abstain")
    claimed = literal_retained_sets([{"a"}, {"a"}, {"b"}], 1, 0.6, 9)
    assert frozenset() in claimed  # the literal reading asks the model about it, and is told "right"
    assert defense.answer("q", ["evil", "p1", "p2", "p3"]).abstained
    found = defense.certify("q", passages, "right")
    assert found.tau == 0
    assert found.responses[0].text == "I don't know"


def test_3_no_source_left_to_decode_leaves_everything_to_the_attacker() -> None:
    def distribution(text, prefix):
        if text in ("", "evil"):
            return [0, 0, 1] if not prefix else [1, 0, 0]
        return None if not prefix else [1, 0, 0]

    defense = DecodingAggregation(ScriptedDecodingModel(distribution), prompts=BARE)
    assert defense.answer("q", ["silent", "silent", "silent"]).abstained
    assert defense.answer("q", ["evil", "silent", "silent"]).text == "b"
    found = defense.certify("q", ["silent"] * 3, "b")
    assert (found.tau, found.unbounded) == (0, True)
    clean = defense.certify("q", ["silent"] * 3, "b", corruption_size=0, metric=graded)
    assert [r.text for r in clean.responses] == ["I don't know"]


def literal_tree(distribution, benign, none, corrupted, eta, limit, *, extend_start: bool = False):
    """Algorithm 4 as written; `extend_start` scores r* (never assigned, so the start) instead of what was popped."""
    found, stack, popped = set(), [()], 0
    while stack:
        popped += 1
        response = stack.pop()
        if len(response) >= limit or response[-1:] == (0,):
            found.add(response)
            continue
        at = () if extend_start else response
        total = [sum(column) for column in zip(*(distribution(p, at) for p in benign), strict=True)]
        order = sorted(range(len(total)), key=lambda t: (-total[t], t))
        gap = total[order[0]] - total[order[1]]
        fallback = max(range(len(total)), key=lambda t: (distribution(none, response)[t], -t))
        if gap > eta + corrupted:
            stack.append((*response, order[0]))
        elif eta + corrupted >= gap > abs(eta - corrupted):
            stack += [(*response, order[0]), (*response, fallback)]
        elif eta - corrupted >= gap > 0:
            stack.append((*response, fallback))
        else:
            return None, popped
    return found, popped


def test_4_the_partial_response_is_what_goes_on() -> None:
    def distribution(text, prefix):
        return [0, 1, 0] if prefix == () else [1, 0, 0]  # "a", then the end

    model = ScriptedDecodingModel(distribution)
    defense = DecodingAggregation(model, prompts=BARE, max_new_tokens=3)
    passages = ["p"] * 5
    literal, _ = literal_tree(distribution, passages[:4], "", 1, 0, 3, extend_start=True)
    assert literal == {(1, 1, 1)}
    assert defense.answer("q", passages).text == "a"
    found = defense.certify("q", passages, "a")
    assert [r.text for r in found.responses] == ["a"]
    assert found.tau == 1


def test_5_a_tie_is_no_danger_when_eta_covers_the_attacker() -> None:
    def distribution(text, prefix):
        if prefix:
            return [1.0, 0, 0, 0]
        return {"l": [0, 1.0, 0, 0], "r": [0, 0, 1.0, 0]}.get(text, [0, 0, 0, 1.0])

    passages = ["l", "r", "l", "r", "r"]
    settings = {"prompts": BARE, "eta": 2.0, "max_new_tokens": 1, "slack": 0.0}
    defense = DecodingAggregation(ScriptedDecodingModel(distribution), **settings)
    literal, _ = literal_tree(distribution, passages[:4], "", 1, 2.0, 1)
    assert literal is None
    found = defense.certify("q", passages, "c")
    assert ([r.text for r in found.responses], found.tau, found.complete) == (["c"], 1.0, True)


def test_6_the_no_retrieval_token_on_top_is_one_child() -> None:
    steps = 12

    def distribution(text, prefix):
        return [0, 0.6, 0.4]

    passages = ["p"] * 6
    settings = {"prompts": BARE, "eta": 0.5, "max_new_tokens": steps, "slack": 0.0, "stop": ["zz"]}
    defense = DecodingAggregation(ScriptedDecodingModel(distribution), **settings)
    _, popped = literal_tree(distribution, passages[:5], "", 1, 0.5, steps)
    assert popped == 2 ** (steps + 1) - 1
    found = defense.certify("q", passages, "a" * steps)
    assert (found.tau, found.model_calls) == (1.0, steps)  # one session, and one prefix at every later step


def test_7_a_limit_gives_no_certificate() -> None:
    passages = [f"p{i}" for i in range(8)]
    contested = " ".join(f"w{i}" for i in range(9))
    says = dict.fromkeys(passages, "sure")
    says |= dict.fromkeys(passages[:3], f"sure {contested}")

    def final(prompt: str) -> str:
        return "wrong" if all(f"w{i}" not in prompt for i in range(9)) else "right"

    defense = keyword_defense(says, final, alpha=0.5, beta=9)
    exact = defense.certify("q", passages, "right")
    assert (exact.tau, exact.certified) == (0, True)
    limited = defense.certify("q", passages, "right", max_model_calls=60)
    assert (limited.tau, limited.certified, limited.complete) == (0, False, False)
    assert "2^9" in (limited.stopped or "")
    assert limited.model_calls == 7  # it does not begin what it cannot end


def test_8_the_threshold_is_exact() -> None:
    alpha, n = 0.28, 25
    assert alpha * n > 7
    sets = [{"paris"}] * 7 + [{f"other{i}"} for i in range(17)]
    literal = literal_retained_sets(sets, 1, alpha, 99, counts_of_attackers=[1])
    assert frozenset() in literal
    span = keyword_span(sets, 1, Threshold.of(alpha, 99))
    assert (span.always, span.contested) == (("paris",), ())


@pytest.mark.parametrize("noise", [2.0**-12, 1e-9])
def test_9_gaps_are_demanded_by_a_slack(noise: float) -> None:
    gap, eta, corrupted = 2 * ONE + round(noise * ONE), ONE, 1
    choice = TokenChoice(1, 1, 2, gap, False)
    assert gap > eta + corrupted * ONE  # Case 1, read literally
    assert possible_tokens(choice, [3], corrupted, eta).kind == "top"
    with_slack = possible_tokens(choice, [3], corrupted, eta, slack=ONE >> 10)
    assert (with_slack.kind, with_slack.tokens) == ("either", (1, 3))
    tie = TokenChoice(3, 1, 2, round(noise * ONE), True)
    assert possible_tokens(tie, [3], corrupted, eta).kind == "either"
    assert possible_tokens(tie, [3], corrupted, eta, slack=ONE >> 10).kind == "open"


def test_10_every_placement_that_shifts_the_sources_is_looked_at() -> None:
    passages = ["p1", "p2", "p3", "p4", "p5", "p6"]
    good = {f"{a}\n\n{b}" for a, b in [("p1", "p2"), ("p3", "p4"), ("p5", "p6")]}
    model = ScriptedModel(lambda text: "A" if text in good else "B")
    defense = MajorityVoting(model, prompts=BARE_CHOICES, passages_per_source=2)
    choices = ["right", "wrong"]
    # Literally: the sources of the top k - k' passages, one corrupted source next to them.
    literal_votes = Counter("A" if g in good else "B" for g in ("p1\n\np2", "p3\n\np4"))
    assert literal_votes["A"] >= literal_votes["B"] + 1
    assert defense.answer("q", ["evil", *passages[:5]], choices=choices).text == "wrong"
    found = defense.certify("q", passages, "right", choices=choices)
    assert (found.tau, found.cases) == (0, 3)


def test_10_no_untouched_source_means_no_certificate() -> None:
    model = ScriptedModel(lambda text: "A")
    defense = MajorityVoting(model, prompts=BARE_CHOICES, passages_per_source=3)
    found = defense.certify("q", ["p1", "p2", "p3"], "right", choices=["right", "wrong"])
    assert (found.tau, found.unbounded) == (0, True)
    assert "no untouched source" in (found.stopped or "")


def test_11_nothing_is_ejected_from_a_list_that_is_not_full() -> None:
    says = {"p1": "B", "p2": "B", "p3": "A", "evil": "A"}
    defense = MajorityVoting(ScriptedModel(says), prompts=BARE_CHOICES, quorum=0)
    choices = ["wrong", "right"]
    passages = ["p1", "p2", "p3"]
    # Literally, p3 falls out: two votes for "right" against one.
    assert defense.certify("q", passages, "right", choices=choices).tau == 1
    assert defense.answer("q", ["evil", *passages], choices=choices).abstained  # two against two
    found = defense.certify("q", passages, "right", choices=choices, top_k=10)
    assert found.tau == 0
    assert math.isclose(found.settings["top_k"], 10)
