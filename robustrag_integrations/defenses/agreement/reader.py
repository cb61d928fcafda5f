"""From a group's response to its keywords, or to an abstention: what keyword and consensus aggregation read alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from robustrag_integrations.abstention import Abstention, is_abstention
from robustrag_integrations.checks import check_at_least
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.keywords import KeywordExtractor, SpacyKeywordExtractor, extractor_fingerprint
from robustrag_integrations.keywords.lists import items_of_lists
from robustrag_integrations.keywords.normalise import as_keyword
from robustrag_integrations.keywords.questions import asks_for_something_else
from robustrag_integrations.keywords.segments import word_count
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import ABSTENTION
from robustrag_integrations.replies.reading import CutReplies, check_cut_replies
from robustrag_integrations.reply_text import answer_text

_SHORT = 2_000  # characters of a reply that is read together with others


@dataclass
class Known:
    """What one question's reader has read ahead.

    Attributes:
        replies: texts that do not abstain, with their keywords.
        asked: the keywords of the question; None before they were looked for.
    """

    replies: dict[str, frozenset[str]] = field(default_factory=dict)
    asked: frozenset[str] | None = None


@dataclass(frozen=True)
class KeywordReader:
    """Reads responses, each for itself.

    Attributes:
        extractor: a response to its keywords.
        min_words: keywords of fewer words do not count, unless they are items of a list; 1 keeps all. One with a NUL
            character never counts: NUL sets marks apart from keywords.
        abstention: whether a response abstains.
        cut_replies: what a reply that was cut does.
        question: the one whose keywords do not count (`for_question`).
        known: what was read ahead of this question and its replies.
    """

    extractor: KeywordExtractor
    min_words: int = 1
    abstention: Callable[[str], bool] = is_abstention
    cut_replies: CutReplies = "abstain"
    question: str | None = None
    known: Known = field(default_factory=Known, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        extractor: KeywordExtractor | None,
        min_words: int,
        abstention: Callable[[str], bool] | Sequence[str] | None,
        cut_replies: CutReplies,
    ) -> KeywordReader:
        """From user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        if extractor is not None and not callable(extractor):
            raise TypeError(f"extractor must be a function from text to a set of str, got {type(extractor).__name__}")
        check_at_least(1, min_words=min_words)
        return cls(
            extractor if extractor is not None else SpacyKeywordExtractor(),
            min_words,
            _abstention_of(abstention),
            check_cut_replies(cut_replies),
        )

    def for_question(self, query: str) -> KeywordReader:
        """This reader with the keywords of this question, which tell no answers apart and cost radius.

        They are those of a question with a question word in it ("who", "wann", "何"). The options of "Is it Paris or
        London?" do count. An extractor that raises over the question finds none in it.
        """
        if not asks_for_something_else(query):
            return replace(self, known=Known())
        reader = replace(self, question=query, known=Known())
        if not self.is_brief:
            reader.known.asked = reader.asked
        return reader

    @property
    def asked(self) -> frozenset[str]:
        """The keywords of the question."""
        if self.known.asked is None:
            self.known.asked = frozenset()
            if self.question is not None:
                with suppress(Exception):
                    found = self.extractor(self.question)
                    self.known.asked = frozenset(str.__str__(word) for word in found or () if isinstance(word, str))
        return self.known.asked

    def read_ahead(self, replies: Sequence[Response]) -> None:
        """Read the question and short replies together where that is quicker than one by one; the same is found."""
        extractor = self.extractor
        if not self.is_brief or type(extractor) is not SpacyKeywordExtractor:
            return
        new = dict.fromkeys(r.text for r in replies if r.text and len(r.text) <= _SHORT)
        with suppress(Exception):  # each is then read by itself, and costs its own group alone
            texts = [text for text in new if text not in self.known.replies and not self.abstention(text)]
            asked = [self.question] if self.question is not None and self.known.asked is None else []
            found = extractor.of_each([*texts, *asked])
            self.known.replies.update(zip(texts, found, strict=False))
            if asked:
                self.known.asked = found[-1]

    @property
    def is_brief(self) -> bool:
        """Whether short replies are read in no time to speak of: by nothing of the user's, and nothing to be loaded."""
        known = self.abstention is is_abstention or isinstance(self.abstention, Abstention)
        return known and isinstance(self.extractor, SpacyKeywordExtractor) and self.extractor.is_brief

    def abstains(self, text: str) -> bool:
        """Whether an answer abstains; a function that raises over it does not say so."""
        if text == ABSTENTION:
            return True
        if text in self.known.replies:
            return False
        try:
            return bool(self.abstention(text))
        except INTERRUPTS:
            raise
        except BaseException:
            return False

    def keywords_of(self, response: Response) -> Reading[frozenset[str]]:
        """A response's keywords; a failure if the extractor raises, or returns anything but a collection of str."""
        return read_response(response, self._keywords, self.cut_replies)

    def _keywords(self, text: str) -> frozenset[str] | None:
        words = self.known.replies.get(text)
        if words is None:
            if self.abstention(text) or (found := self.extractor(text)) is None:
                return None
            words = _as_counted(found)
        counted = self._phrases(words, text)
        return counted - self.asked or counted

    def _phrases(self, words: frozenset[str], text: str) -> frozenset[str]:
        """The keywords of enough words, and those of fewer that are items of a list."""
        if self.min_words == 1:
            return words
        short = frozenset(w for w in words if word_count(w) < self.min_words)
        items: set[str] = set()
        for item in items_of_lists(answer_text(text)) if short else ():
            whole = as_keyword(item)
            if whole in short:
                items.add(whole)
            elif whole not in words and word_count(whole) < self.min_words:
                items.update(w for w in self.extractor(item) or () if w in short)
        return words - short | items

    def as_dict(self) -> dict[str, Any]:
        """What decides the reading, JSON-safe, as answers and certificates name it."""
        return {
            "min_words": self.min_words,
            "extractor": extractor_fingerprint(self.extractor),
            "abstention": extractor_fingerprint(self.abstention),
            "cut_replies": self.cut_replies,
        }


def _as_counted(found: Collection[str]) -> frozenset[str]:
    """What an extractor returned, whoever wrote it.

    Raises:
        TypeError: anything but a collection of str.
    """
    given = () if isinstance(found, str) else tuple(found)  # a generator can be read but once
    if isinstance(found, str):
        raise TypeError("the extractor must return a set of str, got str")
    for word in given:
        if not isinstance(word, str):
            raise TypeError(
                f"the extractor must return a set of str, got {type(found).__name__} with {type(word).__name__} in it"
            )
    words = map(str.__str__, given)  # of a subclass of str, which may compare as it likes, the characters alone
    return frozenset(w for w in words if "\0" not in w and not w.isspace() and w)


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
