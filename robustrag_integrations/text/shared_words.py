"""Tells whether a reply says anything that the passages before it say, by its words."""

from __future__ import annotations

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.text.languages import VERDICTS, language_of, stop_words

_LOOKED_AT = 200_000  # characters of the passages
_STEM = 4  # letters that two forms of a word share, as "weekly" and "weeks" do
_UNSPACED = frozenset({"zh", "ja", "th"})


class SharedWords:
    """The words of some passages, against which replies to a question about them are held.

    The words of the question are left out, as a reply repeats them whether it was read or made up; so are small words
    and a yes or no, which the passages say in other words.
    Nothing is told of another language than the question's, nor of one that is written without spaces.
    """

    def __init__(self, question: str, passages: str) -> None:
        read = passages[:_LOOKED_AT]
        language = language_of(question)
        self._is_told = language == language_of(read) and language is not None and language not in _UNSPACED
        self._language = language
        self._left_out = frozenset(plain_words(question).split()) | stop_words(language or "") | VERDICTS
        self._known = frozenset(map(_stem, plain_words(read).split())) if self._is_told else frozenset()

    def may_be_in(self, reply: str) -> bool:
        """True unless the reply has content words, none of which the passages have: then it was likely made up."""
        if not self._is_told or language_of(reply) not in (None, self._language):
            return True
        return not self._content(reply) or self.are_in(reply)

    def are_in(self, beginning: str) -> bool:
        """True if the beginning of a reply has a content word of the passages, or nothing is told of it."""
        return not self._is_told or any(_stem(word) in self._known for word in self._content(beginning))

    def _content(self, text: str) -> list[str]:
        return [word for word in plain_words(text).split() if word not in self._left_out]


def _stem(word: str) -> str:
    return word[:_STEM] if word.isalpha() else word
