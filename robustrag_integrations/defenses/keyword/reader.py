"""Reading of a group's reply as keywords or as an abstention."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from robustrag_integrations.abstention import Abstains, is_abstention
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.keywords import (
    KeywordExtractor,
    SpacyKeywordExtractor,
    WordExtractor,
    extractor_fingerprint,
)
from robustrag_integrations.languages import asks_for_something_else
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import CutReplies


@dataclass(frozen=True)
class KeywordReader:
    """Reads replies, each for itself.

    Attributes:
        extractor: a reply to its keywords.
        min_words: keywords of fewer words do not count.
        abstention: a function that is True if a reply abstains.
        cut_replies: the fate of a reply that was cut.
        question: the one whose own words do not count (`for_question`).
    """

    extractor: KeywordExtractor = field(default_factory=WordExtractor)
    min_words: int = 1
    abstention: Abstains = is_abstention
    cut_replies: CutReplies = "abstain"
    question: str = ""

    def for_question(self, query: str) -> KeywordReader:
        """Return this reader for one question, whose own keywords do not count if it asks for something else.

        The options of "Is it Paris or London?" do count. An extractor that raises over a question finds nothing in it.
        """
        return replace(self, question=query)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The keywords of the question."""
        if asks_for_something_else(self.question):
            with suppress(Exception):
                return _as_counted(self.extractor(self.question) or ())
        return frozenset()

    def read(self, response: Response) -> Reading[frozenset[str]]:
        """Return a response's keywords; a failure if the extractor raises, or returns no collection of str."""
        return read_response(response, self.keywords_of, self.cut_replies)

    def keywords_of(self, text: str) -> frozenset[str] | None:
        """Return the keywords of a reply's text; None if it abstains. One of the question's words alone keeps them."""
        found = None if self.abstention(text) else self.extractor(text)
        if found is None:
            return None
        counted = frozenset(word for word in _as_counted(found) if len(word.split()) >= self.min_words)
        return counted - self._asked or counted

    def abstains(self, text: str) -> bool:
        """True if a final answer abstains; a function that raises over it counts as a no."""
        if text == ABSTENTION:
            return True
        try:
            return bool(self.abstention(text))
        except INTERRUPTS:
            raise
        except BaseException:
            return False

    def as_dict(self) -> dict[str, Any]:
        """The settings that decide the reading, JSON-safe, as answers and certificates name them."""
        return {
            "min_words": self.min_words,
            "extractor": extractor_fingerprint(self.extractor),
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
        }


def extractor_of(given: KeywordExtractor | str) -> KeywordExtractor:
    """Return an extractor as it is, or the one of a name.

    Raises:
        TypeError: it is no function.
        ImportError: it is `spacy`, which is not installed.
    """
    if isinstance(given, str):
        return SpacyKeywordExtractor() if given == "spacy" else WordExtractor()
    if not callable(given):
        raise TypeError(f"extractor must be a function from text to a set of str, got {type(given).__name__}")
    return given


def _as_counted(found: Collection[str]) -> frozenset[str]:
    """Return an extractor's keywords as plain str, whoever wrote the extractor.

    Raises:
        TypeError: anything but a collection of str.
    """
    if isinstance(found, str):
        raise TypeError("the extractor must return a set of str, got str")
    given = tuple(found)  # a generator can be read but once
    for word in given:
        if not isinstance(word, str):
            raise TypeError(
                f"the extractor must return a set of str, got {type(found).__name__} with {type(word).__name__} in it"
            )
    words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
    return frozenset(w for w in words if "\0" not in w and not w.isspace() and w)
