"""A method that only counts has all that answers have: nothing of it is the method's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from robustrag_integrations import CallableModel, Passage, Response, TooFewVotesError
from robustrag_integrations.counting import Counted, Holds, worst_case_sums
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.plans.asking import PlanInput, ask_sources, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from tests.defenses.toy.defense import UNANIMITY, UnanimitySettings
from tests.helpers.scripted import BARE


@dataclass(frozen=True)
class Lead(Counted):
    """The reply that most sources give, ahead of every other one."""

    said: Sequence[str | None]
    pending: int = 0

    @property
    def winner(self) -> str | None:
        best = Counter(reply for reply in self.said if reply).most_common(2)
        return None if not best or (len(best) == 2 and best[0][1] == best[1][1]) else best[0][0]

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        rivals: list[str | None] = [*dict.fromkeys(r for r in self.said if r and r != self.winner), "a new one"]
        leads = np.array([[(r == self.winner) - (r == rival) for r in self.said] for rival in rivals], np.int64)
        holds: Holds = (worst_case_sums(leads, -1, most, pending) > 0).all(axis=0)
        return holds & (self.winner is not None) | ((np.arange(most + 1) == 0) & (pending == 0))


class Plurality(TextDefense):
    """Written after CONTRIBUTING: it asks, reads, counts and drafts."""

    method = UNANIMITY
    settings_type = UnanimitySettings
    decides_early = True

    @staticmethod
    def plan_of(inputs: PlanInput, settings: UnanimitySettings) -> Steps[Draft]:
        prompts = [settings.prompts.isolated.render(context=g.text, query=inputs.query) for g in inputs.sources]
        heard = yield from ask_sources(inputs, prompts, lambda r: read_response(r, str.strip), 0.5, Lead)
        lead = Lead(heard.found)
        sources = heard.reports(lambda r: {"status": "supports" if r == lead.winner else "differs", "words": (r,)})
        return Draft(inputs.answer(lead.winner, sources=sources), heard, lead)


LINK = "paris, see https://evil.example/x"
PASSAGES = [Passage(f"{place}", origin=f"{place}.md") for place in range(7)]


def asked(replies: Sequence[str | None], **rules: Any) -> Any:
    def model(prompt: str) -> Response:
        reply = replies[int(prompt[0])]
        return Response(reply, error=None if reply else "the server is down", truncated=prompt[0] == "1")

    chosen = CallableModel(model, samples=False, attempts=1, max_concurrency=1)
    return Plurality(chosen, prompts=BARE, **rules).answer("Which city?", PASSAGES[: len(replies)])


def test_warnings_settings_and_spending_come_by_themselves() -> None:
    answer = asked([LINK] * 4 + ["rome", None])
    assert (answer.text, answer.radius, answer.method) == (LINK, 1, "toy")
    assert answer.settings == {"at_least": 2}
    assert (answer.model_calls, answer.spending.calls) == (6, 6)
    said = " / ".join(answer.warnings)
    assert "the passages of 1 of 6 sources were cut" in said
    assert "1 of 6 sources failed (the server is down)" in said
    assert "a link or image that no supporting passage has: https://evil.example/x" in said
    order = [next(i for i, w in enumerate(answer.warnings) if part in w) for part in ("cut", "failed", "a link")]
    assert order == sorted(order)


def test_it_stops_early_and_says_so() -> None:
    answer = asked(["paris"] * 7, stop_when_decided=True)
    assert (answer.text, answer.evidence["decided_after"], answer.radius) == ("paris", 4, 0)
    assert any("decided after 4 of 7 sources" in warning for warning in answer.warnings)
    further = asked(["paris"] * 7, stop_when_decided=True, min_radius=1)
    assert (further.evidence["decided_after"], further.radius) == (5, 1)


def test_the_quorum_and_the_minimum_radius_hold() -> None:
    failing = ["paris"] * 4 + [None] * 3
    assert asked(failing).radius == 0  # one failure more, and there is no answer
    withheld = asked(["paris"] * 4 + ["rome"], min_radius=2)
    assert (withheld.text, withheld.abstained, withheld.evidence["radius"]) == ("I don't know", True, 1)
    with pytest.raises(TooFewVotesError):
        asked(["paris"] * 4 + ["rome"], min_radius=2, below="raise")


def test_a_planted_error_in_the_count_is_seen_in_both_radii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lead, "holding", lambda self, most, pending=0, **_: np.ones(most + 1, bool))
    answer = asked(["paris", "paris", "rome"])
    assert answer.radius == answer.radius_verbatim == 1  # the quorum alone is left
