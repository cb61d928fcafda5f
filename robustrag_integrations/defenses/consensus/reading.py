"""A reply as consensus counts it: its key, its wording, and whether the model is sure of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.core import Vote, vote
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.keywords.words import extractor_fingerprint
from robustrag_integrations.languages import is_literal
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.reply import LEVELS, confidence


@dataclass(frozen=True)
class Said(Vote):
    """What a reply says.

    Attributes:
        counts: False for an answer of which the model is too unsure to have a vote.
        is_sure: False if the model is unsure of it. It counts for nothing where `counts` is True.
        confidence: how sure it is, from 0 to 1; None where that is not known.
    """

    counts: bool = True
    is_sure: bool = field(default=True, compare=False)
    confidence: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class AnswerReader:
    """Reads replies to one question, each for itself.

    Attributes:
        abstention: a function that is True if a reply abstains.
        cut_replies: the effect of a reply that was cut.
        sure_from: the confidence from which the model is sure, from 0 to 1.
        unsure_counts: False if a reply of which it is unsure abstains.
        question: the question, whose words alone are no answer.
    """

    abstention: Callable[[str], bool] = is_abstention
    cut_replies: CutReplies = "abstain"
    sure_from: float = 0.5
    unsure_counts: bool = True
    question: str = ""

    def for_question(self, question: str) -> AnswerReader:
        """Return this reader for one question."""
        return replace(self, question=question)

    def as_dict(self) -> dict[str, Any]:
        """The settings that decide the reading, JSON-safe."""
        return {
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
            "unsure": "count" if self.unsure_counts else "abstain",
            "sure_from": self.sure_from,
        }

    def read(self, response: Response) -> Reading[Said]:
        """Return what a response says; None if it abstains, repeats the question, or cannot be read."""

        def said_in(text: str) -> Said | None:
            if self.says_nothing(text):
                return None
            if (found := vote(text, self.question)) is None:
                return None
            level = confidence(response.logprobs)
            share = None if level is None else level / LEVELS
            is_sure = share is None or share >= self.sure_from
            return Said(found.key, found.text, is_sure or self.unsure_counts, is_sure, share)

        return read_response(response, said_in, self.cut_replies)

    def says_nothing(self, text: str) -> bool:
        """True if a reply abstains; "null" and the like are answers where the question asks for code."""
        if self.abstention is is_abstention and is_literal(text, self.question):
            return False
        return bool(self.abstention(text))

    def abstains(self, text: str) -> bool:
        """True if an answer abstains; a function that raises over it counts as a no."""
        if text == ABSTENTION:
            return True
        try:
            return self.says_nothing(text)
        except INTERRUPTS:
            raise
        except BaseException:
            return False
