"""The settings of keyword aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings, counts_claims
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.keyword import KEYWORD, Final, KeywordOptions
from robustrag_integrations.defenses.keyword.absolute import AbsoluteThreshold
from robustrag_integrations.defenses.keyword.counting import KeywordRule
from robustrag_integrations.defenses.keyword.relative import RelativeThreshold
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.grouping.votes import VoteRules
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

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class KeywordSettings:
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        rule: the rule for keeping keywords.
        reader: a response to its keys.
        task: `short_answer` or `long_form`.
        prompts: the prompts for the model.
        quorum: number of groups that must have been asked with success.
        final: the cases in which the model words the kept keys.
        is_default_rule: True if the user has chosen no threshold.
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
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[KeywordOptions]
    ) -> KeywordSettings | ClaimSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = KEYWORD.check_task(task)
        if counts_claims(chosen_task, options.get("extractor")):
            return ClaimSettings.of(KEYWORD, chosen_task, prompts, options)
        given = KEYWORD.checked(options)
        long_form = chosen_task == "long_form"
        if long_form:  # long answers are lists of phrases, which stay text
            if given["replies"] == "structured":
                raise ValueError("replies='structured' is for short answers; use replies='text' with task='long_form'")
            given["replies"] = "text"
        chosen = chosen_prompts(prompts, chosen_task)
        worded = chosen.keyword or agreed_prompt(chosen.isolated, chosen_task)
        if unknown := set(worded.fields) - {"keywords", "query"}:
            raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
        return cls(
            _rule_of(given),
            ReplyReader.of(given, given["min_words"] or (2 if long_form else 1)),
            chosen_task,
            replace(chosen, keyword=worded),
            Quorum(given["quorum"]),
            given["final"],
            all(options.get(s.name) is None for s in KEYWORD.thresholds),
        )

    def under(self, rules: VoteRules) -> KeywordSettings:
        """Return the settings as they are under these rules of voting.

        With weights, a threshold that nobody has chosen is relative: a number of votes that is enough in any case is
        one that a few groups without weight may reach, too.
        """
        if rules.weights is None or not self.is_default_rule:
            return self
        return replace(self, rule=_rule_of(KEYWORD.in_force({"threshold": "relative"})))

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


def _rule_of(given: Mapping[str, Any]) -> KeywordRule:
    if given["threshold"] == "relative":
        return RelativeThreshold.of(given["share"], given["min_support"])
    return AbsoluteThreshold.of(given["alpha"], given["beta"])
