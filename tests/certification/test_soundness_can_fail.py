"""The brute force would notice: certificates and radii with an error planted in them are caught in the same worlds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from robustrag_integrations.certification import findings
from robustrag_integrations.defenses.agreement import list_certificate, plurality
from robustrag_integrations.defenses.agreement.linear_forms import Counted
from robustrag_integrations.defenses.agreement.lists import CountedList
from robustrag_integrations.defenses.agreement.plurality import Count
from robustrag_integrations.defenses.consensus import certificate as consensus
from robustrag_integrations.defenses.consensus.outcome import Outcome
from robustrag_integrations.defenses.decoding import plan as decoding_plan
from robustrag_integrations.defenses.decoding import token_choice
from robustrag_integrations.defenses.keyword import certificate as keyword
from robustrag_integrations.defenses.keyword import threshold
from robustrag_integrations.defenses.voting import defense as voting
from robustrag_integrations.plans.asking import Quorum
from tests.helpers.brute_force import Tally, attack_certificates, attack_radius
from tests.helpers.worlds import (
    consensus_world,
    decoding_world,
    keyword_world,
    list_world,
    voting_world,
)


def violations(attack: Callable[[random.Random, Tally], None]) -> int:
    tally = Tally()
    for seed in range(300):
        attack(random.Random(f"mutant/{seed}"), tally)
        if tally.violations:
            break
    return len(tally.violations)


def attackers_alone_do_not_count(monkeypatch) -> None:
    real = keyword.keyword_span
    monkeypatch.setattr(keyword, "keyword_span", lambda *a: replace(real(*a), unbounded=False))


def attackers_do_not_raise_the_threshold(monkeypatch) -> None:
    real = keyword.keyword_span

    def mistaken(sets, m, rule):
        span, clean = real(sets, m, rule), real(sets, 0, rule)
        return replace(span, always=clean.always)

    monkeypatch.setattr(keyword, "keyword_span", mistaken)


def nobody_fails_on_purpose(monkeypatch) -> None:
    monkeypatch.setattr(Quorum, "can_be_missed", lambda *a: False)


def only_the_first_case_is_looked_at(monkeypatch) -> None:
    real = findings.benign_group_cases
    monkeypatch.setattr(findings, "benign_group_cases", lambda *a, **k: real(*a, **k)[:1])


def a_vote_less(monkeypatch) -> None:
    real = voting.possible_winners
    monkeypatch.setattr(
        voting, "possible_winners", lambda votes, rule, m, known: real(votes, rule, max(0, m - 1), known)
    )


def ties_are_never_reached(monkeypatch) -> None:
    real = voting.possible_winners
    monkeypatch.setattr(
        voting, "possible_winners", lambda *a: (lambda found: (found[0], not found[0], found[2]))(real(*a))
    )


def attackers_weigh_less_than_a_group(monkeypatch) -> None:
    real = token_choice.possible_tokens
    monkeypatch.setattr(
        token_choice, "possible_tokens", lambda choice, t0, m, eta, slack: real(choice, t0, m / 2, eta, slack)
    )


def the_no_retrieval_token_is_forgotten(monkeypatch) -> None:
    real = token_choice.possible_tokens

    def forgetful(choice, t0, m, eta, slack):
        span = real(choice, t0, m, eta, slack)
        return replace(span, tokens=span.tokens[:1])

    monkeypatch.setattr(token_choice, "possible_tokens", forgetful)


def of_items(monkeypatch, choices: Callable[[list[str | None]], list[str | None]]) -> None:
    real = list_certificate.possible_items
    monkeypatch.setattr(
        list_certificate,
        "possible_items",
        lambda made, corrupted: {key: choices(wordings) for key, wordings in real(made, corrupted).items()},
    )


def wordings_are_never_contested(monkeypatch) -> None:
    of_items(monkeypatch, lambda wordings: [wordings[0], *(w for w in wordings[1:] if w is None)])


def items_are_never_contested(monkeypatch) -> None:
    of_items(monkeypatch, lambda wordings: [wording for wording in wordings if wording is not None])


def a_consensus_form_is_never_contested(monkeypatch) -> None:
    real = consensus._forms
    monkeypatch.setattr(consensus, "_forms", lambda votes, key, m: {min(real(votes, key, 0))})


def a_corrupted_vote_less(monkeypatch) -> None:
    real = consensus.possible
    monkeypatch.setattr(consensus, "possible", lambda votes, m, rule: real(votes, m - 1, rule))


def nobody_is_heard_alone(monkeypatch) -> None:
    real = consensus.possible_texts

    def mistaken(readings, corrupted, settings):
        try:
            return real(readings, corrupted, settings)
        except consensus.Unbounded as why:
            if str(why) != consensus.ANY_SOLE:
                raise
            return {consensus.ABSTENTION}

    monkeypatch.setattr(consensus, "possible_texts", mistaken)


@pytest.mark.parametrize(
    ("make", "plant"),
    [
        (consensus_world, a_consensus_form_is_never_contested),
        (consensus_world, a_corrupted_vote_less),
        (consensus_world, nobody_is_heard_alone),
        (list_world, wordings_are_never_contested),
        (list_world, items_are_never_contested),
        (keyword_world, attackers_alone_do_not_count),
        (keyword_world, attackers_do_not_raise_the_threshold),
        (keyword_world, nobody_fails_on_purpose),
        (keyword_world, only_the_first_case_is_looked_at),
        (voting_world, a_vote_less),
        (voting_world, ties_are_never_reached),
        (decoding_world, attackers_weigh_less_than_a_group),
        (decoding_world, the_no_retrieval_token_is_forgotten),
    ],
)
def test_an_error_planted_in_certificates_is_caught(make, plant, monkeypatch) -> None:
    plant(monkeypatch)
    assert violations(lambda rng, tally: attack_certificates(make(rng), rng, tally, placements=10, replies=40)) > 0


def keys_do_not_enter_the_radius(monkeypatch) -> None:
    monkeypatch.setattr(Count, "holding", lambda self, votes, most, pending=0, **_: np.ones(most + 1, bool))


def wordings_do_not_enter_the_radius(monkeypatch) -> None:
    monkeypatch.setattr(Outcome, "has_wordings", False)


def ties_are_taken_for_wins(monkeypatch) -> None:
    monkeypatch.setattr(plurality, "_LOST_TIE", -1)


def replaced_votes_add_nothing(monkeypatch) -> None:
    monkeypatch.setattr(plurality, "_REPLACED", 0)


def other_keywords_are_not_looked_at(monkeypatch) -> None:
    always = np.ones(99, bool)
    monkeypatch.setattr(threshold.Threshold, "_stay_away", lambda self, *rest: always[: rest[3] + 1])


def kept_keywords_are_not_looked_at(monkeypatch) -> None:
    always = np.ones(99, bool)
    monkeypatch.setattr(threshold.Threshold, "_stay", lambda self, *rest: always[: rest[3] + 1])


def items_need_only_stay(monkeypatch) -> None:
    def mistaken(self, votes, most, pending=0, *, verbatim=False):
        stays = [self._stays(key, votes, most, pending) for key in self.shown]
        return np.all([np.ones(most + 1, bool), *stays], axis=0)

    monkeypatch.setattr(CountedList, "holding", mistaken)


def items_always_stay(monkeypatch) -> None:
    monkeypatch.setattr(CountedList, "_stays", lambda self, key, votes, most, pending=0: np.ones(most + 1, bool))


def groups_never_fail_on_purpose(monkeypatch) -> None:
    monkeypatch.setattr(Quorum, "radius", lambda *a: 99)


def a_vote_too_many(monkeypatch) -> None:
    real = Counted.radius
    monkeypatch.setattr(Counted, "radius", lambda *a, **k: real(*a, **k) + 1)


def a_decoding_radius_too_many(monkeypatch) -> None:
    real = decoding_plan.step_radius
    monkeypatch.setattr(decoding_plan, "step_radius", lambda *a: min(real(*a) + 1, a[-1]))


def replaced_groups_take_nothing_away(monkeypatch) -> None:
    real = token_choice._largest_sum
    monkeypatch.setattr(token_choice, "_largest_sum", lambda values, r: 0 * real(values, r))


@pytest.mark.parametrize(
    ("make", "plant"),
    [
        (keyword_world, a_vote_too_many),
        (consensus_world, keys_do_not_enter_the_radius),
        (consensus_world, wordings_do_not_enter_the_radius),
        (consensus_world, ties_are_taken_for_wins),
        (consensus_world, replaced_votes_add_nothing),
        (keyword_world, other_keywords_are_not_looked_at),
        (keyword_world, kept_keywords_are_not_looked_at),
        (list_world, items_need_only_stay),
        (list_world, items_always_stay),
        (keyword_world, groups_never_fail_on_purpose),
        (voting_world, a_vote_too_many),
        (voting_world, ties_are_taken_for_wins),
        (voting_world, replaced_votes_add_nothing),
        (voting_world, groups_never_fail_on_purpose),
        (decoding_world, a_decoding_radius_too_many),
        (decoding_world, replaced_groups_take_nothing_away),
    ],
)
def test_an_error_planted_in_radii_is_caught(make, plant, monkeypatch) -> None:
    plant(monkeypatch)
    assert violations(lambda rng, tally: attack_radius(make(rng, agreeing=True), rng, tally, largest=3, most=500)) > 0
