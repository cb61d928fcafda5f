"""The settings of consensus aggregation, and how they read a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from robustrag_integrations._util.settings import setting
from robustrag_integrations.core import Vote, isolate, vote
from robustrag_integrations.counting import Rule
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import AbstainingSettings
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import LEVELS, confidence
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.replies.keys import Items, items_of, verdict_of
from robustrag_integrations.text.prompts import OBJECT_PROMPT, REQUESTS, Prompt

ONE_IN = {"plurality": 4, "majority": 2}
"""More than one in so many of the votes that answer must be for an answer."""


@dataclass(frozen=True)
class Said(Vote):
    """What a reply says.

    `counts`: the model is sure enough for it to have a vote; `is_sure` counts for nothing by itself; `confidence`: from
    0 to 1, None where it is not known.
    """

    counts: bool = True
    is_sure: bool = field(default=True, compare=False)
    confidence: float | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class ConsensusSettings(AbstainingSettings):
    """Everything that decides a consensus apart from the model.

    `objects`: a final call puts the agreed answer into an object, or into the format of a parser.
    """

    method: ClassVar[Method] = METHODS["consensus"]

    min_support: int = setting(2, "number of sources that must give an answer", least=1, threshold=True)
    agreement: Literal["plurality", "majority"] = setting(
        "plurality",
        "what wins: the answer of most sources, of more than a quarter of those that answer, or of more than half "
        "(majority)",
        threshold=True,
    )
    unsure: Literal["count", "abstain"] = setting(
        "count",
        "effect of a reply of which the model is unsure; abstain suits weak models, and needs log-probabilities",
    )
    sure_from: float = setting(
        0.5, "confidence from which the model is sure of a reply (replies/confidence.py)", least=0, most=1
    )
    objects: bool = False

    @cached_property
    def rule(self) -> Rule:
        """The rule that chooses the answer."""
        return Rule(self.min_support, ONE_IN[self.agreement], verdict_of)

    def reading(self, question: str) -> Callable[[Response], Reading[Any]]:
        """Return what reads replies to a question, each for itself: what one says, or its items; None: it abstains."""
        if self.task != "list":
            return lambda r: read_response(r, partial(self._said, question, r.logprobs), self.cut_replies)
        return lambda r: read_response(r, partial(self._items, question), self.cut_replies)

    def _items(self, question: str, text: str) -> Items | None:
        return None if self.abstains(text, question) else items_of(text) or None

    def _said(self, question: str, logprobs: Sequence[float] | None, text: str) -> Said | None:
        if self.abstains(text, question) or (found := vote(text)) is None:
            return None
        level = None if self.task == "long_form" else confidence(logprobs)  # that of many tokens is always low
        share = None if level is None else level / LEVELS
        is_sure = share is None or share >= self.sure_from
        return Said(found.key, found.text, is_sure or self.unsure == "count", is_sure, share)

    @property
    def request(self) -> str:
        """A short answer, or items, agree; sentences do not."""
        return REQUESTS[self.task]

    def isolated_prompts(self, query: str, sources: Sequence[Source]) -> list[Prompt]:
        """One prompt per source."""
        return isolate(self.prompts.isolated, query, [source.text for source in sources])

    def object_prompt(self, query: str, agreed: str) -> Prompt | None:
        """The prompt that puts an agreed answer into an object; None where none is asked for."""
        return (self.prompts.object or OBJECT_PROMPT).render(agreed=agreed, query=query) if self.objects else None

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        shared = {
            "task": self.task,
            "min_support": self.min_support,
            "quorum": self.quorum,
            "disagreement": self.disagreement,
            "abstains": self.abstains.fingerprint,
            "cut_replies": self.cut_replies,
        }
        if self.task == "list":  # whose items win by more than half, whatever the model is sure of
            return shared
        return {**shared, "agreement": self.agreement, "unsure": self.unsure, "sure_from": float(self.sure_from)}
