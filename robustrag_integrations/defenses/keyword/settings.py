"""The settings of keyword aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.rules import Disagreement
from robustrag_integrations.defenses.keyword import KEYWORD, Final, KeywordOptions
from robustrag_integrations.defenses.keyword.reader import KeywordReader
from robustrag_integrations.defenses.keyword.threshold import Threshold
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import Prompt, PromptSet, Task, agreed_prompt, chosen_prompts

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PAPERS: tuple[float, int] = (0.2, 3)
_HALF = 0.5  # of long form: what fewer than half of the sources carry is no part of the final prompt


@dataclass(frozen=True)
class KeywordSettings:
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        threshold: the number of votes that keeps a keyword.
        reader: a response to its keywords.
        task: `short_answer` or `long_form`.
        prompts: the prompts for the model.
        quorum: number of groups that must have been asked with success.
        final: when the model words the kept keywords.
        disagreement: the text where nothing is kept.
        has_beta: True if the user has given a number of groups that is enough in any case.
    """

    threshold: Threshold
    reader: KeywordReader
    task: Task
    prompts: PromptSet
    quorum: Quorum
    final: Final = "always"
    disagreement: Disagreement = "tell"
    has_beta: bool = False

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[KeywordOptions]
    ) -> KeywordSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = KEYWORD.check_task(task)
        given = KEYWORD.checked(options)
        alpha, beta = (_HALF, None) if chosen_task == "long_form" else _PAPERS
        alpha, beta = given["alpha"] if given["alpha"] is not None else alpha, given["beta"] or beta
        return cls(
            Threshold.of(alpha, beta),
            KeywordReader.of(given, given["min_words"] or (2 if chosen_task == "long_form" else 1)),
            chosen_task,
            _with_final_prompt(chosen_prompts(prompts, chosen_task), chosen_task),
            Quorum(given["quorum"]),
            given["final"],
            given["disagreement"],
            given["beta"] is not None,
        )

    @classmethod
    def of_majority(
        cls, min_support: int, prompts: PromptSet | None, **options: Unpack[KeywordOptions]
    ) -> KeywordSettings:
        """Build the settings of another method's long form: what more than half of the groups, and so many, carry."""
        found = cls.of(task="long_form", prompts=prompts, **options)
        return replace(found, threshold=Threshold(Fraction(1, 2), None, min_support, is_strict=True))

    def under(self, rules: VoteRules) -> KeywordSettings:
        """Return the settings as they are under these rules of voting.

        With weights a share of all votes decides alone: a few groups without weight could reach a number of votes.

        Raises:
            ValueError: weights beside a number of groups that is enough in any case.
        """
        if rules.weights is None:
            return self
        if self.has_beta:
            raise ValueError(
                f"beta={self.threshold.beta} is a number of groups, and weights= gives groups several votes; leave "
                "beta out: alpha is a share of all votes then"
            )
        return replace(self, threshold=replace(self.threshold, beta=None))

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in groups]

    def final_prompt(self, query: str, kept: Sequence[str]) -> Prompt:
        """Return the second prompt: the query and the list of kept keywords, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - checked in `of`
        return self.prompts.keyword.render(keywords=", ".join(kept), query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "least": self.threshold.least,
            "task": self.task,
            "final": self.final,
            "quorum": self.quorum.share,
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
