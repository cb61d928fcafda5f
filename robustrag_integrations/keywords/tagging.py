"""Tagging one response at a time with a spaCy pipeline that remembers nothing of it.

Everything here serves one property: the tags of a response are a function of that response alone, whatever hostile
responses were tagged before it, from however many threads.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from robustrag_integrations.keywords.string_ids import SafeLine, without_crafted_words, without_long_words
from robustrag_integrations.keywords.words import TaggedWord

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

MAX_NEW_WORDS = 500_000
CACHE = "cache"  # the attribute in which spaCy's lemmatizers keep lemmas, by ids that can be made to collide
_LINES_AT_A_TIME = 64
_FIRST_SYMBOL = "IS_ALPHA"  # spaCy's id 1
_CONFUSED = (AssertionError, IndexError, KeyError, SystemError)  # what spaCy raises over ids that it confuses

_locks: weakref.WeakKeyDictionary[Language, AbstractContextManager[bool]] = weakref.WeakKeyDictionary()
_finding_a_lock = threading.RLock()


class ConfusedTagsError(ValueError):
    """A pipeline gave tokens that are not the words of the text."""


class Tagger:
    """One pipeline behind a lock, which all taggers of that pipeline share.

    Each response is tagged on its own, never in a batch with another, and inside a memory zone: its words leave nothing
    in the pipeline's vocabulary that a later response could meet, and caches of lemmas are emptied. What a zone cannot
    free, a few bytes of index for every new word, is shed by loading the pipeline again after `MAX_NEW_WORDS` of them;
    a pipeline that the user loaded is kept as it is.

    A word that spaCy would confuse with another (see `string_ids`) has a stand-in's part of speech and is its own
    lemma.
    """

    def __init__(self, load: Callable[[], Language], fingerprint: str) -> None:
        self._load = load
        self.fingerprint = fingerprint
        language = load()
        self._lock = lock_of(language)
        with self._lock:
            self._use(language)

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line of one response with their parts of speech and lemmas, without spaces."""
        with self._lock:
            if len(self.language.vocab) - self._words_at_first > MAX_NEW_WORDS:
                self._use(self._load())
            try:
                return self._tagged(lines, without_crafted_words(lines, self.language.vocab.strings))
            except (ConfusedTagsError, *_CONFUSED):
                return self._tagged(lines, without_long_words(lines))

    def _use(self, language: Language) -> None:
        # spaCy's maps go on pointing at a word of id 1 when its memory zone is over. One that stays is never freed.
        _ = language.vocab[_FIRST_SYMBOL]
        self.language = language
        self._words_at_first = len(language.vocab)

    def _tagged(self, lines: Sequence[str], safe: Sequence[SafeLine]) -> list[list[TaggedWord]]:
        self._forget()
        try:
            with self.language.memory_zone():
                docs = self.language.pipe([line.text for line in safe], batch_size=_LINES_AT_A_TIME)
                return [_words(line, doc, shown) for line, doc, shown in zip(lines, docs, safe, strict=True)]
        finally:
            self._forget()

    def _forget(self) -> None:
        for _, component in self.language.pipeline:
            cache = getattr(component, CACHE, None)
            if isinstance(cache, dict):
                cache.clear()


def _words(line: str, doc: Doc, shown: SafeLine) -> list[TaggedWord]:
    """The words of a tagged line, as they stand in the response.

    Raises:
        ConfusedTagsError: the tokens are not the text.
    """
    if doc.text != shown.text:
        raise ConfusedTagsError(f"the pipeline reads {doc.text!r:.80} in place of {shown.text!r:.80}")
    return [_word(line, token, shown) for token in doc if not token.is_space]


def _word(line: str, token: Any, shown: SafeLine) -> TaggedWord:
    start, end = token.idx, token.idx + len(token)
    written = line[start:end]
    lemma = written if shown.replaced and shown.stands_in(start, end) else token.lemma_
    return TaggedWord(written, lemma, token.pos_, start)


def lock_of(language: Language) -> AbstractContextManager[bool]:
    """The one lock of a pipeline, to be held while anything is read with it."""
    with _finding_a_lock:
        if language not in _locks:
            _locks[language] = threading.RLock()
        return _locks[language]
