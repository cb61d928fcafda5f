"""The model's replies, kept with an answer so that a certificate need not ask again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from robustrag_integrations._util.display import printable
from robustrag_integrations.grouping.passages import GroupBy, Passage
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.requests import Ask, Plan, Reply, Request, noted, responses_of
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
            return "it was made from other passages"
        if self.choices != now.choices:
            return "it was asked with other choices"
        if self.model is not now.model or self.state != now.state:
            return "another model gave it, or the model has changed since"
        if type(self.settings) is not type(now.settings) or (self.settings, self.by) != (now.settings, now.by):
            return "it was made with another method or other settings"
        return None


@dataclass
class Kept:
    """The model's replies for one answer; none of a decoding session.

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

    def note(self, request: Request, reply: Reply) -> None:
        """Keep a reply. Failures and replies that were not waited for are left out: a certificate asks again."""
        if isinstance(request, Ask):
            pairs = [(p, r) for p, r in zip(request.prompts, responses_of(reply), strict=True) if r.text is not None]
            if request.role == "final":
                self.finals.update(pairs)
                return
            self.batch = len(request.prompts)
            for prompt, response in pairs:
                known = self.replies.setdefault(prompt, response)
                if known != response:
                    self.replies[prompt] = None


def fills(prompt: Prompt) -> bool:
    """Tell whether a prompt holds no passage, and only fills a batch: its group abstains whatever the reply."""
    return prompt.context is not None and prompt.context[0] == prompt.context[1]


def keeping(plan: Plan, asked: Asked) -> Plan:
    """Wrap a plan: its answer keeps the model's replies (`RobustAnswer.kept`)."""
    kept = Kept(asked)
    answer = yield from noted(plan, kept.note)
    return replace(answer, kept=kept)
