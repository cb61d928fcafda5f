"""The settings of keyword aggregation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings, counts_claims
from robustrag_integrations.defenses.agreement.reader import ReplyReader, Ungrounded
from robustrag_integrations.defenses.keyword.absolute import AbsoluteThreshold
from robustrag_integrations.defenses.keyword.counting import KeywordRule
from robustrag_integrations.defenses.keyword.relative import RelativeThreshold
from robustrag_integrations.defenses.registry import KEYWORD
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import (
    Prompt,
    PromptSet,
    Task,
    agreed_prompt,
    chosen_prompts,
    final_is_ours,
    structured_prompts,
)
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.replies.structured import Replies

Threshold = Literal["relative", "absolute"]
Final = Literal["auto", "always", "never"]


@dataclass(frozen=True)
class KeywordSettings:
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        rule: which keywords are kept.
        reader: a response to its keys.
        task: `short_answer` or `long_form`.
        prompts: the prompts for the model.
        quorum: how many groups must have been asked with success.
        final: when the model is asked to word the kept keys.
        is_default_rule: whether the user has chosen no threshold.
    """

    rule: KeywordRule
    reader: ReplyReader
    task: Task
    prompts: PromptSet
    quorum: Quorum
    final: Final = "auto"
    is_default_rule: bool = False

    @classmethod
    def of(
        cls,
        *,
        threshold: Threshold | None = None,
        share: float | Fraction | None = None,
        min_support: int | None = None,
        alpha: float | Fraction | None = None,
        beta: int | None = None,
        extractor: KeywordExtractor | Literal["runs", "spacy"] | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        min_words: int | None = None,
        quorum: float | None = None,
        abstention: Callable[[str], bool] | Sequence[str] | None = None,
        cut_replies: CutReplies | None = None,
        replies: Replies | None = None,
        ungrounded: Ungrounded | None = None,
        final: Final | None = None,
    ) -> KeywordSettings | ClaimSettings:
        """Build the settings from user arguments, explained at `KeywordAggregation`. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = KEYWORD.check_task(task)
        if counts_claims(chosen_task, extractor):
            return ClaimSettings.of(
                chosen_task,
                min_support=KEYWORD.value("min_support", min_support),
                prompts=prompts,
                quorum=KEYWORD.value("quorum", quorum),
                abstention=abstention,
                cut_replies=KEYWORD.value("cut_replies", cut_replies),
                others={
                    **{"threshold": threshold, "share": share, "alpha": alpha, "beta": beta, "min_words": min_words},
                    "final": None if final in ("auto", "never") else final,
                    "replies": None if replies in ("auto", "text") else replies,
                    "ungrounded": ungrounded,
                },
            )
        words = min_words if min_words is not None else (2 if chosen_task == "long_form" else 1)
        chosen = chosen_prompts(prompts, chosen_task)
        worded = chosen.keyword or agreed_prompt(chosen.isolated, chosen_task)
        if unknown := set(worded.fields) - {"keywords", "query"}:
            raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
        chosen_rule = {"threshold": threshold, "share": share, "min_support": min_support, "alpha": alpha, "beta": beta}
        return cls(
            _rule_of(**chosen_rule),
            ReplyReader.of(
                KEYWORD.value("extractor", extractor),
                words,
                abstention,
                KEYWORD.value("cut_replies", cut_replies),
                _replies_for(chosen_task, KEYWORD.value("replies", replies)),
                KEYWORD.choice("ungrounded", ungrounded),
            ),
            chosen_task,
            replace(chosen, keyword=worded),
            Quorum(KEYWORD.value("quorum", quorum)),
            KEYWORD.choice("final", final),
            all(given is None for given in chosen_rule.values()),
        )

    def under(self, rules: VoteRules) -> KeywordSettings:
        """Return the settings as they are under these rules of voting.

        With weights, a threshold that nobody has chosen is relative: a number of votes that is enough in any case is
        one that a few groups without weight may reach, too.
        """
        if rules.weights is None or not self.is_default_rule:
            return self
        return replace(self, rule=_rule_of(threshold="relative"))

    @property
    def as_counted(self) -> bool:
        """True if all keywords are shown as they are counted: those of a user's extractor."""
        return self.reader.extractor is not None

    @property
    def words_own(self) -> bool:
        """True if the final reply may say kept words only: runs of words, asked for by a prompt of ours."""
        return self.task == "short_answer" and final_is_ours(self.prompts) and not self.as_counted

    @property
    def streams(self) -> bool:
        """True if the final reply is shown as it comes: it never gives way to the kept words."""
        return self.final == "always"

    @property
    def shows_sole(self) -> bool:
        """True if the reply of the only group that answers is shown as it is; the paper's final call words it."""
        return self.final != "always"

    def asks_for(self, words: int) -> bool:
        """True if the model is asked to put so many kept words into an answer."""
        if not words or self.final == "never":
            return False
        return self.final == "always" or words > 1 or not self.words_own

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; for long form a request for short phrases."""
        if self.reader.replies == "structured":
            return structured_prompts(self.prompts.isolated, query, [g.text for g in groups])
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in groups]

    def final_prompt(self, query: str, shown: Sequence[str]) -> Prompt:
        """Return the second prompt: the query and the list of kept words, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - checked in `of`
        return self.prompts.keyword.render(keywords=", ".join(shown), query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            **self.rule.as_dict(),
            "task": self.task,
            "final": self.final,
            "quorum": self.quorum.share,
            **self.reader.as_dict(),
        }


def _replies_for(task: Task, replies: Replies) -> Replies:
    """Return the form of replies; long answers are lists of phrases, which stay text."""
    if task == "long_form" and replies == "structured":
        raise ValueError("replies='structured' is for short answers; use replies='text' with task='long_form'")
    return "text" if task == "long_form" else replies


def _rule_of(**given: Any) -> KeywordRule:
    """Return the rule that the given numbers are for, or the default one."""
    found = KEYWORD.in_force(given)
    if found["threshold"] == "relative":
        return RelativeThreshold.of(found["share"], found["min_support"])
    return AbsoluteThreshold.of(found["alpha"], found["beta"])
