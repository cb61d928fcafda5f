"""The settings of keyword aggregation, and how they read a reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.keyword.threshold import Threshold
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import AbstainingSettings
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.text.keywords import KeywordExtractor, WordExtractor, extractor_fingerprint
from robustrag_integrations.text.prompts import Prompt, agreed_prompt
from robustrag_integrations.text.spacy_keywords import SpacyKeywordExtractor

_PAPERS_BETA = 3


@dataclass(frozen=True, kw_only=True)
class KeywordSettings(AbstainingSettings):
    """Everything that decides a keyword aggregation apart from the model."""

    method: ClassVar[Method] = METHODS["keyword"]

    alpha: float | Fraction = setting(
        0.2,
        "share of the answering sources that keeps a keyword: at least min(alpha * n, beta) of n, as in the paper",
        long_form=0.5,  # what fewer than half of the sources carry is no part of the final prompt
        least=0,
        most=1,
        threshold=True,
    )
    beta: int | None = setting(
        None,
        "number of sources that keeps a keyword in any case; 3 as in the paper, none for long form",
        least=1,
        threshold=True,
    )
    final: Literal["always", "never"] = setting(
        "always",
        "whether the model words the kept keywords, as in the paper, or the kept keywords are the answer (never)",
    )
    min_words: int = setting(
        1,
        "keywords of fewer words do not count (the paper's results come from dropping single words)",
        long_form=2,
        least=1,
    )
    extractor: KeywordExtractor | Literal["words", "spacy"] = setting(
        "words",
        "what finds a reply's keywords: words, its content words; spacy, the paper's; or a function from reply to "
        "keywords",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        final = self.prompts.keyword or agreed_prompt(self.prompts.isolated, self.task)  # keywords for passages
        if unknown := set(final.fields) - {"keywords", "query"}:
            raise ValueError(f"the final prompt asks for {sorted(unknown)}; it is given keywords and query alone")
        self._set(prompts=replace(self.prompts, keyword=final), extractor=_extractor_of(self.extractor))

    @cached_property
    def threshold(self) -> Threshold:
        """The number of votes that keeps a keyword."""
        beta = self.beta or (None if self.task == "long_form" else _PAPERS_BETA)
        return Threshold.of(self.alpha, beta)

    def reading(self, question: str) -> Callable[[Response], Reading[frozenset[str]]]:
        """Return what reads the keywords of replies to a question, each for itself; none if a reply abstains.

        The question's own words count in a reply that has no others alone ("Paris" of "Is it Paris or London?"). An
        extractor that raises over a question finds nothing in it.
        """
        extract: Any = self.extractor
        asked: frozenset[str] = frozenset()
        with suppress(Exception):
            asked = _as_counted(extract(question) or ())

        def keywords_of(text: str) -> frozenset[str] | None:
            found = None if self.abstains(text, question) else extract(text)
            if found is None:
                return None
            counted = frozenset(word for word in _as_counted(found) if len(word.split()) >= self.min_words)
            return counted - asked or counted

        return lambda response: read_response(response, keywords_of, self.cut_replies)

    def isolated_prompts(self, query: str, sources: Sequence[Source]) -> list[Prompt]:
        """One prompt per source; for long form a request for short phrases."""
        template = self.prompts.phrases if self.task == "long_form" and self.prompts.phrases else self.prompts.isolated
        return [template.render(context=g.text, query=query) for g in sources]

    def final_prompt(self, query: str, kept: Sequence[str]) -> Prompt:
        """Return the second prompt: the query and the list of kept keywords, nothing else."""
        assert self.prompts.keyword is not None  # noqa: S101 - set at the start
        return self.prompts.keyword.render(keywords=", ".join(kept), query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "alpha": str(self.threshold.alpha),
            "beta": self.threshold.beta,
            "task": self.task,
            "final": self.final,
            "quorum": self.quorum,
            "disagreement": self.disagreement,
            "min_words": self.min_words,
            "extractor": extractor_fingerprint(self.extractor),  # type: ignore[arg-type]
            "abstains": self.abstains.fingerprint,
            "cut_replies": self.cut_replies,
        }


def _extractor_of(given: KeywordExtractor | str) -> KeywordExtractor:
    if isinstance(given, str):
        return SpacyKeywordExtractor() if given == "spacy" else WordExtractor()
    if not callable(given):
        raise TypeError(f"extractor must be a function from text to a set of str, got {type(given).__name__}")
    return given


def _as_counted(found: Collection[str]) -> frozenset[str]:
    """Return an extractor's keywords as plain str; TypeError for anything but a collection of str."""
    given = () if isinstance(found, str) else tuple(found)  # a generator can be read but once
    wrong = found if isinstance(found, str) else next((word for word in given if not isinstance(word, str)), None)
    if wrong is not None:
        raise TypeError(f"the extractor must return a set of str, got {type(wrong).__name__}")
    words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
    return frozenset(w for w in words if "\0" not in w and not w.isspace() and w)
