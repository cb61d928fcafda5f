"""A method that only counts has all that answers have: nothing of it is the method's own."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from robustrag_integrations import CallableModel, Passage, Response, TooFewVotesError
from robustrag_integrations.counting.linear_forms import Counted, HoldsPerBudget, Votes
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.plans.asking import PlanInput, Quorum, ask_groups, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from tests.defenses.toy.defense import UNANIMITY, UnanimitySettings
from tests.helpers.scripted import BARE


@dataclass(frozen=True)
class Lead(Counted):
    """The reply that most groups give, ahead of every other one."""

    said: Sequence[str | None]
    weights: Sequence[int]

    @property
    def winner(self) -> str | None:
        votes: Counter[str] = Counter()
        for reply, weight in zip(self.said, self.weights, strict=True):
            votes.update({reply: weight} if reply else {})
        best = votes.most_common(2)
        return None if not best or (len(best) == 2 and best[0][1] == best[1][1]) else best[0][0]

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        rivals: list[str | None] = [*dict.fromkeys(r for r in self.said if r and r != self.winner), "a new one"]
        leads = np.array([[(r == self.winner) - (r == rival) for r in self.said] for rival in rivals], np.int64)
        holds: HoldsPerBudget = (votes.worst_case_sums(leads, -1, most, pending) > 0).all(axis=0)
        return holds & (self.winner is not None) | ((np.arange(most + 1) == 0) & (pending == 0))


class Plurality(TextDefense):
    """Written after CONTRIBUTING: it asks, reads, counts and drafts."""

    method = UNANIMITY
    settings_type = UnanimitySettings
    decides_early = True
    takes_weights = True

    @staticmethod
    def plan_of(inputs: PlanInput, settings: UnanimitySettings) -> Steps[Draft]:
        prompts = [settings.prompts.isolated.render(context=g.text, query=inputs.query) for g in inputs.groups]
        heard = yield from ask_groups(inputs, prompts, lambda r: read_response(r, str.strip), Quorum(0.5), Lead)
        lead = Lead(heard.found, heard.votes)
        groups = heard.reports(lambda r: {"status": "supports" if r == lead.winner else "differs", "words": (r,)})
        return Draft(inputs.answer(lead.winner, groups=groups), heard, lead)


LINK = "paris, see https://evil.example/x"
PASSAGES = [Passage(f"{place}", source=f"{place}.md") for place in range(7)]


def asked(replies: Sequence[str | None], **rules: Any) -> Any:
    def model(prompt: str) -> Response:
        reply = replies[int(prompt[0])]
        return Response(reply, error=None if reply else "the server is down", truncated=prompt[0] == "1")

    chosen = CallableModel(model, samples=False, attempts=1, max_concurrency=1)
    return Plurality(chosen, prompts=BARE, **rules).answer("Which city?", PASSAGES[: len(replies)])


def test_warnings_settings_and_spending_come_by_themselves() -> None:
    answer = asked([LINK] * 4 + ["rome", None])
    assert (answer.text, answer.radius, answer.defense) == (LINK, 1, "toy")
    assert answer.settings == {"at_least": 2}
    assert (answer.model_calls, answer.spending.calls) == (6, 6)
    said = " / ".join(answer.warnings)
    assert "the passages of 1 of 6 sources were cut" in said
    assert "1 of 6 sources failed (the server is down)" in said
    assert "a link or image that no supporting passage has: https://evil.example/x" in said
    order = [next(i for i, w in enumerate(answer.warnings) if part in w) for part in ("cut", "failed", "a link")]
    assert order == sorted(order)


def test_it_stops_early_and_says_so() -> None:
    answer = asked(["paris"] * 7, stop_when_decided=True, wave_size=1)
    assert (answer.text, answer.evidence["decided_after"], answer.radius) == ("paris", 4, 0)
    assert any("decided after 4 of 7 sources" in warning for warning in answer.warnings)
    further = asked(["paris"] * 7, stop_when_decided=True, wave_size=1, min_radius=1)
    assert (further.evidence["decided_after"], further.radius) == (5, 1)


def test_the_quorum_and_the_minimum_radius_hold() -> None:
    failing = ["paris"] * 4 + [None] * 3
    assert asked(failing).radius == 0  # one failure more, and there is no answer
    withheld = asked(["paris"] * 4 + ["rome"], min_radius=2)
    assert (withheld.text, withheld.abstained, withheld.evidence["radius"]) == ("I don't know", True, 1)
    with pytest.raises(TooFewVotesError):
        asked(["paris"] * 4 + ["rome"], min_radius=2, below="raise")


def test_every_budget_of_tiers_that_is_proved_holds() -> None:
    replies, weights = ["paris"] * 5 + ["rome"], [1, 1, 2, 1, 1, 1]
    rules: dict[str, Any] = {
        "tiers": {f"{place}.md": "inside" for place in range(3)},
        "weights": {f"{place}.md": weight for place, weight in enumerate(weights)},
    }
    answer = asked(replies, **rules)
    assert answer.radius_by_tier is not None
    assert answer.radius == 2
    for budget in answer.tier_budgets:
        tiers = [range(3), range(3, 6)]
        chosen = [itertools.combinations(tier, budget[name]) for tier, name in zip(tiers, budget, strict=True)]
        for places in itertools.product(*chosen):
            hit = {place for group in places for place in group}
            assert asked(["rome" if i in hit else r for i, r in enumerate(replies)], **rules).text == "paris"


def test_a_planted_error_in_the_count_is_seen_in_both_radii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lead, "holding", lambda self, votes, most, pending=0, **_: np.ones(most + 1, bool))
    answer = asked(["paris", "paris", "rome"])
    assert answer.radius == answer.radius_verbatim == 1  # the quorum alone is left
