"""What an extractor is, and the default one: plain content words of a reply, the paper's keywords without spaCy.

The keywords of a reply are

1. its content words: those that are no small words (stop words) of its language; a "not", a "yes" and a "no" count;
2. its keyphrases: content words in a row with no small word and no punctuation between them;
3. what stands between two punctuation marks, if it is short, without small words at its ends: "the island of Sorra".

Words are compared without case. In scripts without spaces all that stands between punctuation counts whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from itertools import groupby
from typing import Protocol

from robustrag_integrations.keywords.normalise import as_keyword, lines_of
from robustrag_integrations.languages import NEGATIONS, VERDICTS, language_of, stop_words

MAX_PIECE_WORDS = 12
_PUNCTUATION = re.compile(r"[.,;:!?]+(?=\s|\Z)|[()\[\]{}\"。、，；：！？।؟،؛]+|\s[-–—]\s")


class KeywordExtractor(Protocol):
    """Any function from the text of one response to its keywords.

    The certificate rests on two properties that no type can state:

    - deterministic: the same text gives the same keywords, whatever was extracted before, in whichever order or thread;
    - one response only: nothing of another response, of the query or of a passage enters. The extractor is given
      the text alone, and must not remember earlier ones.

    An extractor that is wrong about words costs answers, never soundness. Duplicates do not matter: what is returned is
    counted as a set. Keywords are joined by ", " in the second prompt, so a keyword should hold neither a comma nor a
    line break.
    """

    def __call__(self, text: str, /) -> Collection[str] | None:
        """Return the keywords and keyphrases of one response; None if it abstains."""
        ...


def extractor_fingerprint(extractor: Callable[[str], object]) -> str:
    """Return a line that identifies an extractor.

    If the extractor has a `fingerprint` string, that is it; `SpacyKeywordExtractor` has one. Anything else is named
    `module.qualname (unhashed)`, which does not distinguish two functions with the same name.
    """
    own = getattr(extractor, "fingerprint", None)
    if isinstance(own, str):
        return own
    named = extractor if hasattr(extractor, "__qualname__") else type(extractor)
    module = getattr(named, "__module__", None) or "builtins"  # a method such as `str.split` has none
    return f"{module}.{named.__qualname__} (unhashed)"


class WordExtractor:
    """The content words and keyphrases of one reply, in any language with a list of small words.

    Examples:
        >>> sorted(WordExtractor()("It is Mount Everest."))
        ['everest', 'mount', 'mount everest']
    """

    fingerprint = "words/1"

    def __call__(self, text: str, /) -> frozenset[str]:
        """The keywords of one reply; none for a reply without a letter, digit or symbol."""
        lines = lines_of(text)
        small = _small_words(language_of("\n".join(lines)) or "en")
        found: set[str] = set()
        for line in lines:
            for piece in _PUNCTUATION.split(line):
                words = piece.split()
                telling = [place for place, word in enumerate(words) if as_keyword(word) not in small]
                first, last = (telling[0], telling[-1]) if telling else (0, len(words) - 1)
                if last - first < MAX_PIECE_WORDS:
                    found.add(" ".join(words[first : last + 1]))
                found.update(words[place] for place in telling)
                for _, row in groupby(enumerate(telling), key=lambda item: item[1] - item[0]):
                    found.add(" ".join(words[place] for _, place in row))
        return frozenset(map(as_keyword, found)) - {""}

    def __repr__(self) -> str:
        return "WordExtractor()"


@cache
def _small_words(language: str) -> frozenset[str]:
    return stop_words(language) - NEGATIONS - VERDICTS
