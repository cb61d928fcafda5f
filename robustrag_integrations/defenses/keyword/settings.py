"""The settings of keyword aggregation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from robustrag_integrations.abstention import Abstention, is_abstention
from robustrag_integrations.checks import check_at_least
from robustrag_integrations.defenses.keyword.counting import KeywordThreshold
from robustrag_integrations.defenses.registry import KEYWORD
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.keywords import KeywordExtractor, SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.keywords.questions import asks_for_something_else
from robustrag_integrations.models.base import Response
from robustrag_integrations.passages import PassageGroup
from robustrag_integrations.plans.asking import Quorum, Reading, read_response
from robustrag_integrations.prompts import ABSTENTION, Prompt, PromptSet, Task, agreed_prompt, prompts_for
from robustrag_integrations.replies.reading import CutReplies, check_cut_replies


@dataclass(frozen=True)
class KeywordSettings:
    """Everything that decides a keyword aggregation apart from the model.

    Attributes:
        threshold: alpha and beta.
        extractor: a response to its keywords.
        task: `short_answer` or `long_form`.
        prompts: what the model is asked.
        min_words: keywords of fewer words do not count; 1 keeps all.
        quorum: how many groups must have been asked with success.
        abstention: whether a response abstains.
        asked: the keywords of the question, which do not count (`for_question`).
        cut_replies: what a reply that was cut does.
    """

    threshold: KeywordThreshold
    extractor: KeywordExtractor
    task: Task
    prompts: PromptSet
    min_words: int
    quorum: Quorum
    abstention: Callable[[str], bool] = is_abstention
    asked: frozenset[str] = frozenset()
    cut_replies: CutReplies = "abstain"

    @classmethod
    def of(
        cls,
        *,
        alpha: float | Fraction | None = None,
        beta: int | None = None,
        extractor: KeywordExtractor | None = None,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        min_words: int | None = None,
        quorum: float | None = None,
        abstention: Callable[[str], bool] | Sequence[str] | None = None,
        cut_replies: CutReplies | None = None,
    ) -> KeywordSettings:
        """From user arguments; see `KeywordAggregation` for their meaning. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = KEYWORD.check_task(task)
        if extractor is not None and not callable(extractor):
            raise TypeError(f"extractor must be a function from text to a set of str, got {type(extractor).__name__}")
        words = min_words if min_words is not None else (2 if chosen_task == "long_form" else 1)
        check_at_least(1, min_words=words)
        chosen = prompts or prompts_for(chosen_task)
        final = chosen.keyword or agreed_prompt(chosen.isolated, chosen_task)
        if unknown := set(final.fields) - {"keywords", "query"}:
            raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
        return cls(
            KeywordThreshold.of(KEYWORD.value("alpha", alpha), KEYWORD.value("beta", beta)),
            extractor if extractor is not None else SpacyKeywordExtractor(),
            chosen_task,
            replace(chosen, keyword=final),
            words,
            Quorum(KEYWORD.value("quorum", quorum)),
            _abstention_of(abstention),
            cut_replies=check_cut_replies(KEYWORD.value("cut_replies", cut_replies)),
        )

    def for_question(self, query: str) -> KeywordSettings:
        """These settings with the keywords of this question, which tell no answers apart and cost radius.

        They are those of a question with a question word in it ("who", "wann", "何"). The options of "Is it Paris or
        London?" do count. An extractor that raises over the question finds none in it.
        """
        if not asks_for_something_else(query):
            return self
        try:
            found = self.extractor(query)
            asked = frozenset(str.__str__(word) for word in found or () if isinstance(word, str))
        except Exception:
            return self
        return replace(self, asked=asked)

    def abstains(self, text: str) -> bool:
        """Whether an answer abstains; a function that raises over it does not say so."""
        if text == ABSTENTION:
            return True
        try:
            return bool(self.abstention(text))
        except INTERRUPTS:
            raise
        except BaseException:
            return False

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in groups]

    def final_prompt(self, query: str, retained: Sequence[str]) -> Prompt:
        """The second prompt: the query and the retained keywords in sorted order, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - checked in `of`
        return self.prompts.keyword.render(keywords=", ".join(sorted(retained)), query=query)

    def keywords_of(self, response: Response) -> Reading[frozenset[str]]:
        """A response's keywords; a failure if the extractor raises, or returns anything but a collection of str."""
        return read_response(response, self._keywords, self.cut_replies)

    def _keywords(self, text: str) -> frozenset[str] | None:
        if self.abstention(text):
            return None
        found = self.extractor(text)
        if found is None:
            return None
        given = () if isinstance(found, str) else tuple(found)  # a generator can be read but once
        if isinstance(found, str) or not all(isinstance(w, str) for w in given):
            raise TypeError(f"the extractor must return a set of str, got {type(found).__name__}")
        words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
        counted = frozenset(w for w in words if len(w.split()) >= self.min_words)
        return counted - self.asked or counted

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "task": self.task,
            "min_words": self.min_words,
            "quorum": self.quorum.share,
            "extractor": extractor_fingerprint(self.extractor),
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
        }


def _abstention_of(given: Callable[[str], bool] | Sequence[str] | None) -> Callable[[str], bool]:
    """A function as it is; phrases are recognised besides what `is_abstention` recognises."""
    if given is None:
        return is_abstention
    if callable(given):
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(
            "abstention must be a function from a response to bool, or a list of phrases such as ['keine Ahnung'], got "
            f"{given!r:.80}"
        )
    return Abstention(tuple(given))
