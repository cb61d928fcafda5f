"""Keywords by parts of speech and lemmas, from the shipped spaCy pipeline or your own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from robustrag_integrations.keywords import pipelines
from robustrag_integrations.keywords.kinds import take_exact
from robustrag_integrations.keywords.languages import language_of
from robustrag_integrations.keywords.normalise import MAX_CHARACTERS, MAX_REPLY, plain_lines
from robustrag_integrations.keywords.rules import keywords_in, keywords_of
from robustrag_integrations.normalise import few_marks
from robustrag_integrations.reply_text import answer_text, unboxed

if TYPE_CHECKING:
    from spacy.language import Language


class SpacyKeywordExtractor:
    """Keywords and keyphrases of one response (paper, appendix "Implementation of keyword extraction").

    Args:
        pipeline: None for the pipeline that ships with the package, loaded at the first use, once per process.
            Otherwise the name of an installed pipeline ("en_core_web_sm"), the folder of one, or a loaded one; these
            are loaded and checked at once, and need the extra `keyword`.
        language: the language of all replies ("de"), in place of finding it for each one. With a pipeline of your own
            every reply is in its language.

    The result depends on the one response alone and may be asked for from several threads at a time. At most the first
    `normalise.MAX_CHARACTERS` characters of a response count, and of a longer word its first
    `normalise.MAX_WORD_CHARACTERS`; time and memory are linear in what counts. `rules` says what becomes a keyword.

    Raises:
        ImportError: a pipeline is named, and spaCy is not installed; the message names the extra.
        PipelineNotFoundError: no such pipeline; the message says what to install.
        ValueError: the pipeline gives no parts of speech or no lemmas.

    Examples:
        >>> sorted(SpacyKeywordExtractor()("It is Mount Everest."))
        ['everest', 'it is mount everest', 'mount', 'mount everest']
    """

    def __init__(self, pipeline: str | Path | Language | None = None, *, language: str | None = None) -> None:
        self._tagger = pipelines.LazyShippedTagger() if pipeline is None else pipelines.user_tagger(pipeline)
        self._detects = pipeline is None
        self._reads = "en" if pipeline is None else language  # the language that the tagger reads
        self._language = language

    def __call__(self, text: str, /) -> frozenset[str]:
        """Return the keywords of one response; none for a response without a letter, digit or symbol."""
        return self.of_each([text])[0]

    def of_each(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """The keywords of each of these responses, as of each alone; the tagger reads their lines together."""
        plain = [take_exact(few_marks(unboxed(answer_text(text[:MAX_REPLY]))[:MAX_CHARACTERS])) for text in texts]
        lines = [plain_lines(rest) for _, rest in plain]
        languages = [self._language_of(of_one) for of_one in lines]
        read = [of_one if language is None else [] for of_one, language in zip(lines, languages, strict=True)]
        tagged = iter(self._tagger.tag([line for of_one in read for line in of_one]))
        found = []
        for (exact, _), of_one, language in zip(plain, lines, languages, strict=True):
            if language is None:
                found.append(keywords_of(of_one, list(islice(tagged, len(of_one)))) | exact)
            else:
                found.append(keywords_in(of_one, language) | exact)
        return found

    def _language_of(self, lines: list[str]) -> str | None:
        """The language of these lines, where it is another one than the tagger reads."""
        language = self._language
        if language is None and self._detects:
            language = language_of("\n".join(lines))
        return None if language == self._reads else language

    @property
    def is_brief(self) -> bool:
        """Whether it reads a short response in no time to speak of: the shipped pipeline, once it is loaded."""
        return isinstance(self._tagger, pipelines.LazyShippedTagger) and self._tagger.is_there

    @property
    def fingerprint(self) -> str:
        """Name and version of the pipeline, and the SHA-256 of its files and the rules where it lies in a folder."""
        return self._tagger.fingerprint

    def __repr__(self) -> str:
        return f"SpacyKeywordExtractor({self.fingerprint})"
