"""The spending of an answer: calls, rounds and tokens, counted as requests and replies pass between plan and driver.

All drivers and frameworks run their plans through this, so that there is one count. Replies are counted as they came,
before equal ones are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
from robustrag_integrations.answers.usage import UNTOLD, Spending, Usage, together, told
from robustrag_integrations.models.base import Distributions, Opening
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, Score, noted, responses_of


def with_spending(plan: Plan) -> Plan:
    """Wrap a plan: its answer says what it spent, in all and per group."""
    book = _Book()
    answer = yield from noted(plan, book.note)
    return book.entered(answer)


class _Book:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._rounds = 0
        self._groups: dict[int, list[Usage]] = {}
        self._shared: list[Usage] = []
        self._session: Distributions | None = None

    def note(self, request: Request, reply: Reply) -> None:
        """Enter a request and its reply."""
        if isinstance(request, Emit) or (isinstance(request, Score) and reply is None):
            return
        if isinstance(request, Ask):
            usages = {i: r.usage for i, r in enumerate(responses_of(reply)) if r.was_asked}
            self._rounds += len(request.until.waves(len(usages))) if request.until is not None else 1
            if request.role == "isolated":
                for group, usage in usages.items():
                    self._groups.setdefault(group, []).append(usage)
            else:
                self._shared += usages.values()
            return
        self._rounds += 1
        if isinstance(reply, (Opening, Distributions)):
            self._session = reply.distributions if isinstance(reply, Opening) else reply

    def entered(self, answer: RobustAnswer) -> RobustAnswer:
        """Return the answer with its spending."""
        groups = {group: together(usages) for group, usages in self._groups.items()}
        calls = [usage for usages in (*self._groups.values(), self._shared) for usage in usages]
        shared, made, rounds = list(self._shared), len(calls), self._rounds
        if self._session is not None:
            if self._session.rounds is not None:  # a decoding plan makes no other calls
                rounds = self._session.rounds
            spent = self._session.spent or (Usage(),) * (len(self._session.groups) + 1)
            groups |= dict(enumerate(spent[:-1]))
            shared.append(spent[-1])
            calls += spent
            made += self._session.calls
        reports = tuple([_with_usage(g, groups.get(g.index, UNTOLD)) for g in answer.groups])
        spending = Spending(made, rounds, _silent(calls), together(calls), told(calls), together(shared))
        return answer.changed(groups=reports, spending=spending)


def _with_usage(report: GroupReport, usage: Usage) -> GroupReport:
    return report if report.usage is usage or report.usage == usage else replace(report, usage=usage)


def _silent(calls: Sequence[Usage]) -> int:
    return sum(usage.prompt is None or usage.completion is None for usage in calls)
