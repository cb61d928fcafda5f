"""The settings of keyword aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.keyword.reader import KeywordReader, extractor_of
from robustrag_integrations.defenses.keyword.threshold import Threshold
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import AbstainingSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.keywords.words import KeywordExtractor
from robustrag_integrations.prompts import Prompt, PromptSet, Task, agreed_prompt

_PAPERS_BETA = 3


@dataclass(frozen=True, kw_only=True)
class KeywordSettings(AbstainingSettings):
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        other_threshold: a threshold in place of that of alpha and beta.
    """

    method: ClassVar[Method] = METHODS["keyword"]

    alpha: float | Fraction = setting(
        0.2,
        "share of the answering groups that keeps a keyword, with weights of their votes: at least min(alpha * n, "
        "beta) of n, as in the paper",
        long_form=0.5,  # what fewer than half of the sources carry is no part of the final prompt
        least=0,
        most=1,
        threshold=True,
    )
    beta: int | None = setting(
        None,
        "number of groups that keeps a keyword in any case; 3 as in the paper, and none for long form and with "
        "weights, where a few groups could always reach it",
        least=1,
        threshold=True,
    )
    final: Literal["always", "never"] = setting(
        "always",
        "when the model words the kept keywords: always, as in the paper, so that its reply is the answer; never: the "
        "kept keywords are the answer",
    )
    min_words: int = setting(
        1,
        "keywords of fewer words do not count (the paper's text says more than two words, its results come from "
        "dropping single words)",
        long_form=2,
        least=1,
    )
    extractor: KeywordExtractor | Literal["words", "spacy"] = setting(
        "words",
        "what finds a reply's keywords: words, its plain content words and phrases; spacy, the paper's; in Python also "
        "a function from a reply to its keywords, or to None where it abstains",
    )
    other_threshold: Threshold | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(prompts=_with_final_prompt(self.prompts, self.task), extractor=extractor_of(self.extractor))

    @cached_property
    def threshold(self) -> Threshold:
        """The number of votes that keeps a keyword."""
        if self.other_threshold is not None:
            return self.other_threshold
        beta = self.beta or (None if self.task == "long_form" else _PAPERS_BETA)
        return Threshold.of(self.alpha, beta)

    @cached_property
    def reader(self) -> KeywordReader:
        """What reads a response."""
        return KeywordReader(extractor_of(self.extractor), self.min_words, self.abstention, self.cut_replies)

    def under(self, rules: VoteRules) -> KeywordSettings:
        """Return the settings as they are under these rules of voting.

        With weights a share of all votes decides alone: a few groups without weight could reach a number of votes.

        Raises:
            ValueError: weights beside a number of groups that is enough in any case.
        """
        if rules.weights is None:
            return self
        if self.beta is not None:
            raise ValueError(
                f"beta={self.beta} is a number of groups, and weights= gives groups several votes; leave "
                "beta out: alpha is a share of all votes then"
            )
        return replace(self, other_threshold=replace(self.threshold, beta=None))

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in groups]

    def final_prompt(self, query: str, kept: Sequence[str]) -> Prompt:
        """Return the second prompt: the query and the list of kept keywords, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - set at the start
        return self.prompts.keyword.render(keywords=", ".join(kept), query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "least": self.threshold.least,
            "task": self.task,
            "final": self.final,
            "quorum": self.quorum,
            "disagreement": self.disagreement,
            **self.reader.as_dict(),
        }


def _with_final_prompt(prompts: PromptSet, task: Task) -> PromptSet:
    """Return prompts with a final one: their own, or the isolated one with keywords in place of passages.

    Raises:
        ValueError: it asks for something else than keywords and the query.
    """
    final = prompts.keyword or agreed_prompt(prompts.isolated, task)
    if unknown := set(final.fields) - {"keywords", "query"}:
        raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
    return replace(prompts, keyword=final)
