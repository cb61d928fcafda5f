"""The settings of consensus aggregation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.agreement.numbers import exact_number, support_of
from robustrag_integrations.defenses.agreement.reader import ReplyReader, Ungrounded
from robustrag_integrations.defenses.consensus.counting import ConsensusRule
from robustrag_integrations.defenses.registry import CONSENSUS
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import CLAIM_TASKS, Prompt, PromptSet, Task, chosen_prompts, structured_prompts
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies


@dataclass(frozen=True)
class ConsensusSettings:
    """Everything that decides a consensus apart from the model.

    Attributes:
        rule: which keys make the answer.
        reader: a response to its keys.
        prompts: the prompts for the model.
        quorum: how many groups must have been asked with success.
    """

    rule: ConsensusRule
    reader: ReplyReader
    prompts: PromptSet
    quorum: Quorum

    @classmethod
    def of(
        cls,
        *,
        share: float | Fraction | None = None,
        min_support: int | None = None,
        extractor: KeywordExtractor | Literal["runs", "spacy"] | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        quorum: float | None = None,
        abstention: Callable[[str], bool] | Sequence[str] | None = None,
        cut_replies: CutReplies | None = None,
        replies: Replies | None = None,
        ungrounded: Ungrounded | None = None,
    ) -> ConsensusSettings | ClaimSettings:
        """Build the settings from user arguments, explained at `ConsensusAggregation`. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = CONSENSUS.check_task(task)
        if chosen_task in CLAIM_TASKS:
            return ClaimSettings.of(
                chosen_task,
                min_support=CONSENSUS.value("min_support", min_support),
                prompts=prompts,
                quorum=CONSENSUS.value("quorum", quorum),
                abstention=abstention,
                cut_replies=CONSENSUS.value("cut_replies", cut_replies),
                others={
                    "share": share,
                    "extractor": None if extractor == "runs" else extractor,
                    "replies": None if replies in ("auto", "text") else replies,
                    "ungrounded": ungrounded,
                },
            )
        return cls(
            ConsensusRule(
                _share_of(CONSENSUS.value("share", share)), support_of(CONSENSUS.value("min_support", min_support))
            ),
            ReplyReader.of(
                CONSENSUS.value("extractor", extractor),
                1,
                abstention,
                CONSENSUS.value("cut_replies", cut_replies),
                CONSENSUS.value("replies", replies),
                CONSENSUS.choice("ungrounded", ungrounded),
            ),
            chosen_prompts(prompts, chosen_task),
            Quorum(CONSENSUS.value("quorum", quorum)),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        if self.reader.replies == "structured":
            return structured_prompts(self.prompts.isolated, query, [g.text for g in groups])
        isolated = self.prompts.isolated
        return [isolated.render(context=g.text, query=query) for g in groups]

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "share": str(self.rule.share),
            "min_support": self.rule.min_support,
            "task": "short_answer",
            "quorum": self.quorum.share,
            **self.reader.as_dict(),
        }


def _share_of(given: float | Fraction) -> Fraction:
    share = exact_number("share", given, "[0.5, 1)")
    if not Fraction(1, 2) <= share < 1:
        raise ValueError(
            f"share={given!r} must lie in [0.5, 1): what more than this share of the strongest keyword's groups say "
            "makes the answer"
        )
    return share
