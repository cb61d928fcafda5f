"""Keywords by parts of speech and lemmas, from the shipped spaCy pipeline or your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from robustrag_integrations.keywords import pipelines
from robustrag_integrations.keywords.normalise import plain_lines
from robustrag_integrations.keywords.rules import keywords_of

if TYPE_CHECKING:
    from spacy.language import Language


class SpacyKeywordExtractor:
    """Keywords and keyphrases of one response (paper, appendix "Implementation of keyword extraction").

    Args:
        pipeline: None for the pipeline that ships with the package, loaded at the first use, once per process.
            Otherwise the name of an installed pipeline ("en_core_web_sm"), the folder of one, or a loaded one; these
            are loaded and checked at once.

    The result depends on the one response alone and may be asked for from several threads at a time. At most the first
    `normalise.MAX_CHARACTERS` characters of a response count, and of a longer word its first
    `normalise.MAX_WORD_CHARACTERS`; time and memory are linear in what counts. `rules` says what becomes a keyword.

    Raises:
        PipelineNotFoundError: no such pipeline; the message says what to install.
        ValueError: the pipeline gives no parts of speech or no lemmas.

    Example:
        >>> sorted(SpacyKeywordExtractor()("It is Mount Everest."))
        ['everest', 'it is mount everest', 'mount', 'mount everest']
    """

    def __init__(self, pipeline: str | Path | Language | None = None) -> None:
        self._tagger = pipelines.LazyShippedTagger() if pipeline is None else pipelines.user_tagger(pipeline)

    def __call__(self, text: str, /) -> frozenset[str]:
        """Return the keywords of one response; none for a response without a letter, digit or symbol."""
        lines = plain_lines(text)
        return keywords_of(lines, self._tagger.tag(lines))

    @property
    def fingerprint(self) -> str:
        """Name and version of the pipeline, and the SHA-256 of its files and the rules where it lies in a folder."""
        return self._tagger.fingerprint

    def __repr__(self) -> str:
        return f"SpacyKeywordExtractor({self.fingerprint})"
