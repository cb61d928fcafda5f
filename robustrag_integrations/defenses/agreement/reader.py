"""Reading of a group's response as keys or as an abstention, shared by keyword and consensus aggregation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from robustrag_integrations.abstention import abstention_of, is_abstention
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.keywords import KeywordExtractor, SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.keywords.questions import asks_for_something_else, is_literal
from robustrag_integrations.keywords.runs import ReplyKeys, RunReader, find_written
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import CutReplies


@dataclass(frozen=True)
class ReplyReader:
    """Reads responses, each for itself.

    Attributes:
        extractor: a response to its keywords; None for runs of words (`keywords/runs.py`).
        min_words: keys of fewer words do not count, unless they are items of a list; 1 keeps all.
        abstention: a function that is True if a response abstains.
        cut_replies: the fate of a reply that was cut.
        question: the one whose words make no keys (`for_question`).
    """

    extractor: KeywordExtractor | None
    min_words: int = 1
    abstention: Callable[[str], bool] = is_abstention
    cut_replies: CutReplies = "abstain"
    question: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any], min_words: int = 1) -> ReplyReader:
        """Build the reader from checked settings, the `KeywordReplyOptions` and `cut_replies` among them.

        Raises:
            TypeError: an extractor or abstention that is no function; the message names it and the fix.
            ImportError: the extractor is `spacy`, which is not installed.
        """
        extractor = given["extractor"]
        if isinstance(extractor, str):
            extractor = SpacyKeywordExtractor() if extractor == "spacy" else None
        if extractor is not None and not callable(extractor):
            raise TypeError(f"extractor must be a function from text to a set of str, got {type(extractor).__name__}")
        return cls(
            extractor,
            min_words,
            abstention_of(given["abstention"]),
            given["cut_replies"],
        )

    def for_question(self, query: str) -> ReplyReader:
        """Return this reader for one question, whose own words make no answer.

        They are those of a question with a question word in it ("who", "wann", "何"). The options of "Is it Paris or
        London?" do count. An extractor that raises over the question finds nothing in it.
        """
        return replace(self, question=query)

    @cached_property
    def runs(self) -> RunReader:
        """The reader of word runs."""
        return RunReader(self.question)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The keywords of the question, as a user's extractor finds them."""
        if self.extractor is not None and asks_for_something_else(self.question):
            with suppress(Exception):
                return _as_counted(self.extractor(self.question) or ())
        return frozenset()

    def comes_with(self, part: str, key: str) -> bool:
        """True if every reply that says a key says this part of it, too."""
        return part == key if self.extractor is not None or self.min_words > 1 else self.runs.comes_with(part, key)

    def abstains(self, text: str) -> bool:
        """True if an answer abstains; a function that raises over it counts as a no."""
        if text == ABSTENTION:
            return True
        try:
            return self._says_nothing(text)
        except INTERRUPTS:
            raise
        except BaseException:
            return False

    def read(self, response: Response) -> Reading[ReplyKeys]:
        """Return a response's keys; a failure if the extractor raises or returns anything but a collection of str."""
        return read_response(response, self.keys_of, self.cut_replies)

    def keys_of(self, text: str) -> ReplyKeys | None:
        """Return the keys of a reply's text; None if it abstains."""
        if self._says_nothing(text):
            return None
        if self.extractor is None:
            return self.runs(text)
        found = self.extractor(text)
        if found is None:
            return None
        counted = _as_counted(found)
        counted = counted - self._asked or counted
        return ReplyKeys(counted, None, frozenset(), {word: find_written(word, text) for word in counted})

    def _says_nothing(self, text: str) -> bool:
        """True if a reply abstains; "null" and the like are answers where the question asks for code."""
        if self.abstention is is_abstention and is_literal(text, self.question):
            return False
        return bool(self.abstention(text))

    def as_dict(self) -> dict[str, Any]:
        """The settings that decide the reading, JSON-safe, as answers and certificates name them."""
        return {
            "min_words": self.min_words,
            "extractor": "runs" if self.extractor is None else extractor_fingerprint(self.extractor),
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
        }


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
