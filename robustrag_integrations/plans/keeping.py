"""The model's replies, kept with an answer so that a certificate need not ask again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations.grouping.passages import GroupBy, Passage
from robustrag_integrations.models.base import Distributions, Opening, Response
from robustrag_integrations.plans.requests import Append, Ask, OpenSession, Plan, Reply, Request, noted
from robustrag_integrations.prompts import Prompt


@dataclass(frozen=True)
class Asked:
    """The circumstances of an answer, which a certificate must share to use its replies.

    Attributes:
        query: the question.
        passages: the retrieved passages.
        choices: the options; None where there are none.
        settings: the method's.
        by: the key that passages were grouped by, and how many share a group.
        model: the model that was asked.
        state: the model's own `state` when it answered, where it has one (`LocalModel.state`).
    """

    query: str
    passages: tuple[Passage, ...]
    choices: tuple[str, ...] | None
    settings: object
    by: tuple[GroupBy, int]
    model: object
    state: object

    def difference(self, now: Asked) -> str | None:
        """Describe how a certificate that is asked for now differs; None if it does not."""
        if self.query != now.query:
            return f"it is about another question: {printable(self.query, 80)!r}"
        if self.passages != now.passages:
            pairs = zip(self.passages, now.passages, strict=False)
            fewest = min(len(self.passages), len(now.passages))
            rank = next((i for i, (a, b) in enumerate(pairs, 1) if a != b), fewest + 1)
            return f"it was made from other passages, the first of them at rank {rank}"
        if self.choices != now.choices:
            return "it was asked with other choices"
        if self.model is not now.model:
            return "another model gave it"
        if self.state != now.state:
            return "the model has changed since"
        if type(self.settings) is not type(now.settings) or self.settings != now.settings:
            return "it was made with another method or other settings"
        if self.by != now.by:
            return "its passages were grouped otherwise"
        return None


@dataclass(frozen=True)
class SaidSession:
    """The distributions of a decoding session on the way to its answer.

    Attributes:
        opening: its start.
        after: the distributions after each beginning of the answer's tokens.
    """

    opening: Opening
    after: Mapping[tuple[int, ...], Distributions]


@dataclass
class Kept:
    """The model's replies for one answer.

    Attributes:
        asked: the circumstances of the answer.
        replies: the reply to each isolated prompt; None where equal prompts got different replies.
        batch: number of isolated prompts that were asked together.
        finals: the reply to the final prompt.
    """

    asked: Asked
    replies: dict[Prompt, Response | None] = field(default_factory=dict)
    batch: int = 0
    finals: dict[Prompt, Response] = field(default_factory=dict)
    _opened: OpenSession | None = None
    _opening: Opening | None = None
    _tokens: tuple[int, ...] = ()
    _after: dict[tuple[int, ...], Distributions] = field(default_factory=dict)

    def note(self, request: Request, reply: Reply) -> None:
        """Keep a reply. Failures and replies that were not waited for are left out: a certificate asks again."""
        if isinstance(request, Ask) and isinstance(reply, Sequence):
            pairs = [(p, r) for p, r in zip(request.prompts, reply, strict=True) if r.text is not None]
            if request.role == "final":
                self.finals.update(pairs)
                return
            self.batch = len(request.prompts)
            for prompt, response in pairs:
                known = self.replies.setdefault(prompt, response)
                if known != response:
                    self.replies[prompt] = None
        elif isinstance(request, OpenSession) and isinstance(reply, Opening):
            self._opened, self._opening = request, reply
        elif isinstance(request, Append) and isinstance(reply, Distributions):
            self._tokens = (*self._tokens, request.token)
            self._after[self._tokens] = reply

    def session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> SaidSession | None:
        """Return the distributions of a session over these prompts, in their order; None where another was opened.

        A prompt without passages only fills a row, and may stand for any other.
        """
        was, opening = self._opened, self._opening
        if was is None or opening is None or len(was.prompts) != len(prompts):
            return None
        if (was.no_retrieval, was.max_new_tokens) != (no_retrieval, max_new_tokens):
            return None
        free = list(range(len(prompts)))
        rows: list[int | None] = []
        for prompt in prompts:
            row = next((i for i in free if was.prompts[i] == prompt), None)
            if row is None and not fills(prompt):
                return None
            rows.append(row)
            if row is not None:
                free.remove(row)
        order = [free.pop(0) if row is None else row for row in rows]
        cut = tuple(opening.truncated[i] for i in order)
        seated = Opening(opening.abstention[order], _in_order(opening.distributions, order), cut)
        return SaidSession(seated, {tokens: _in_order(d, order) for tokens, d in self._after.items()})


def fills(prompt: Prompt) -> bool:
    """Tell whether a prompt holds no passage, and only fills a batch: its group abstains whatever the reply."""
    return prompt.context is not None and prompt.context[0] == prompt.context[1]


def _in_order(of: Distributions, order: Sequence[int]) -> Distributions:
    if list(order) == list(range(len(order))):
        return of

    def moved(values: Sequence[Any]) -> tuple[Any, ...]:
        """Reorder the groups' values; those behind them stay in place."""
        return tuple(values[i] for i in order) + tuple(values[len(order) :]) if values else ()

    return replace(
        of,
        groups=of.groups[list(order)],
        unlisted=moved(of.unlisted),
        failures=moved(of.failures),
        spent=moved(of.spent),
    )


def keeping(plan: Plan, asked: Asked) -> Plan:
    """Wrap a plan: its answer keeps the model's replies (`RobustAnswer.kept`)."""
    kept = Kept(asked)
    answer = yield from noted(plan, kept.note)
    return replace(answer, kept=kept)
