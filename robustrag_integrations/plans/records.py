"""What is written down while requests and replies pass between plan and driver: the spending."""

from __future__ import annotations

from dataclasses import replace

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.usage import UNTOLD, Spending, Usage, together, told
from robustrag_integrations.models.base import Distributions, Opening
from robustrag_integrations.plans.requests import Ask, Emit, Reply, Request, Score


class SpendingBook:
    """The calls, rounds and tokens of one answer; replies are counted as they came.

    Attributes:
        asked: the number of prompts put to the model.
    """

    def __init__(self) -> None:
        self.asked = self._rounds = 0
        self._groups: dict[int, list[Usage]] = {}
        self._shared: list[Usage] = []
        self._session: Distributions | None = None

    def note(self, request: Request, reply: Reply) -> None:
        """Enter a request and its reply."""
        if isinstance(request, Ask):
            usages = {i: r.usage for i, r in enumerate(reply) if r.was_asked}
            self.asked += len(usages)
            self._rounds += len(request.until.waves(len(usages))) if request.until is not None else 1
            if request.role == "isolated":
                for group, usage in usages.items():
                    self._groups.setdefault(group, []).append(usage)
            else:
                self._shared += usages.values()
        elif not isinstance(request, Emit) and not (isinstance(request, Score) and reply is None):
            self._rounds += 1
            if isinstance(reply, (Opening, Distributions)):
                self._session = reply.distributions if isinstance(reply, Opening) else reply

    def entered(self, answer: RobustAnswer) -> RobustAnswer:
        """Return the answer with its spending, in all and per group."""
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
        reports = tuple(
            report if (usage := groups.get(report.index, UNTOLD)) == report.usage else replace(report, usage=usage)
            for report in answer.groups
        )
        silent = sum(usage.prompt is None or usage.completion is None for usage in calls)
        spending = Spending(made, rounds, silent, together(calls), told(calls), together(shared))
        return answer.changed(groups=reports, spending=spending)
