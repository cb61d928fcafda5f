"""The brute force would notice: certification with an error planted in it is caught in the same worlds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from robustrag_integrations.certification import findings
from robustrag_integrations.defenses.decoding import steps
from robustrag_integrations.defenses.keyword import certificate as keyword
from robustrag_integrations.defenses.voting import certificate as voting
from tests.helpers.worlds import Tally, decoding_world, explore, keyword_world, voting_world


def violations(make, worlds: int) -> int:
    tally = Tally()
    for seed in range(worlds):
        rng = random.Random(f"mutant/{make.__name__}/{seed}")
        explore(make(rng), rng, tally, placements=10, replies=40)
        if tally.violations:
            break
    return len(tally.violations)


def attackers_alone_do_not_count(monkeypatch) -> None:
    real = keyword.keyword_span
    monkeypatch.setattr(keyword, "keyword_span", lambda *a: replace(real(*a), unbounded=False))


def attackers_do_not_raise_the_threshold(monkeypatch) -> None:
    real = keyword.keyword_span
    monkeypatch.setattr(
        keyword, "keyword_span", lambda sets, m, t: replace(real(sets, m, t), always=real(sets, 0, t).always)
    )


def nobody_fails_on_purpose(monkeypatch) -> None:
    monkeypatch.setattr(keyword, "quorum_can_be_missed", lambda *a: False)


def only_the_first_case_is_looked_at(monkeypatch) -> None:
    real = findings.benign_group_cases
    monkeypatch.setattr(findings, "benign_group_cases", lambda *a, **k: real(*a, **k)[:1])


def a_vote_less(monkeypatch) -> None:
    real = voting.possible_winners
    monkeypatch.setattr(voting, "possible_winners", lambda votes, options, m: real(votes, options, m - 1))


def attackers_weigh_less_than_a_group(monkeypatch) -> None:
    real = steps.possible_tokens
    monkeypatch.setattr(steps, "possible_tokens", lambda choice, t0, m, eta, slack: real(choice, t0, m / 2, eta, slack))


def the_no_retrieval_token_is_forgotten(monkeypatch) -> None:
    real = steps.possible_tokens

    def forgetful(choice, t0, m, eta, slack):
        span = real(choice, t0, m, eta, slack)
        return replace(span, tokens=span.tokens[:1])

    monkeypatch.setattr(steps, "possible_tokens", forgetful)


@pytest.mark.parametrize(
    ("make", "plant"),
    [
        (keyword_world, attackers_alone_do_not_count),
        (keyword_world, attackers_do_not_raise_the_threshold),
        (keyword_world, nobody_fails_on_purpose),
        (keyword_world, only_the_first_case_is_looked_at),
        (voting_world, a_vote_less),
        (decoding_world, attackers_weigh_less_than_a_group),
        (decoding_world, the_no_retrieval_token_is_forgotten),
    ],
)
def test_a_planted_error_is_caught(make, plant, monkeypatch) -> None:
    plant(monkeypatch)
    assert violations(make, 150) > 0
