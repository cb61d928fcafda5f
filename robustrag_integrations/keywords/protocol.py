"""The interface between keyword aggregation and an extractor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


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
