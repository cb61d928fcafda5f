"""Loading spaCy pipelines and tagging with them: lazily, safely from threads, and without remembering anything."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.keywords.rules import RULES_VERSION
from robustrag_integrations.keywords.words import TaggedWord

if TYPE_CHECKING:
    from spacy.language import Language

SHIPPED_FOLDER = Path(__file__).with_name("pipeline")
MAX_NEW_WORDS = 500_000
_LINES_AT_A_TIME = 64
_PROBE = "Paris is the capital of France."


class PipelineNotFoundError(RobustRAGError, OSError):
    """The spaCy pipeline that was asked for is not installed."""


class Tagger:
    """One pipeline behind a lock.

    Each response is tagged on its own, never in a batch with another, and inside a memory zone: its words leave nothing
    in the pipeline's vocabulary that a later response could meet. What a zone cannot free, a few bytes of index for
    every new word, is shed by loading the pipeline again after `MAX_NEW_WORDS` of them; a pipeline that the user
    loaded is kept as it is.
    """

    def __init__(self, load: Callable[[], Language], fingerprint: str) -> None:
        self._load = load
        self._lock = threading.Lock()
        self.fingerprint = fingerprint
        self.language = load()
        self._words_at_first = len(self.language.vocab)

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line of one response with their parts of speech and lemmas; spaces are no words."""
        with self._lock:
            if len(self.language.vocab) - self._words_at_first > MAX_NEW_WORDS:
                self.language = self._load()
                self._words_at_first = len(self.language.vocab)
            with self.language.memory_zone():
                docs = self.language.pipe(lines, batch_size=_LINES_AT_A_TIME)
                return [
                    [TaggedWord(line[t.idx : t.idx + len(t)], t.lemma_, t.pos_, t.idx) for t in doc if not t.is_space]
                    for line, doc in zip(lines, docs, strict=True)
                ]


class LazyShippedTagger:
    """The pipeline that ships with the package; loaded by the first caller, shared by all of the process."""

    _loading = threading.Lock()
    _loaded: Tagger | None = None

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line, as `Tagger.tag` does."""
        return self.loaded().tag(lines)

    @property
    def fingerprint(self) -> str:
        """Name, version and hash; read from the files once, without loading the pipeline."""
        return _shipped_fingerprint()

    @classmethod
    def loaded(cls) -> Tagger:
        """Return the one tagger of the process."""
        with cls._loading:
            if cls._loaded is None:
                cls._loaded = user_tagger(SHIPPED_FOLDER)
            return cls._loaded


@cache
def _shipped_fingerprint() -> str:
    return folder_fingerprint(SHIPPED_FOLDER)


def user_tagger(pipeline: str | Path | Language) -> Tagger:
    """Load (if need be) and check a pipeline.

    Raises:
        PipelineNotFoundError: no such package or folder.
        ValueError: it gives no parts of speech or no lemmas.
    """
    if not isinstance(pipeline, (str, Path)):
        _check(pipeline)
        return Tagger(lambda: pipeline, _unhashed_fingerprint(pipeline))
    folder = Path(pipeline)
    if (folder / "meta.json").is_file():
        return _tagger_of_folder(folder)
    nlp = _load(pipeline)
    _check(nlp)
    return Tagger(lambda: _load(pipeline), _unhashed_fingerprint(nlp))


def _tagger_of_folder(folder: Path) -> Tagger:
    fingerprint = folder_fingerprint(folder)

    def load() -> Language:
        nlp = _load(folder)
        if folder_fingerprint(folder) != fingerprint:
            raise RuntimeError(f"the spaCy pipeline in {folder} was changed while it was in use: start again")
        return nlp

    tagger = Tagger(load, fingerprint)
    _check(tagger.language)
    return tagger


def _load(pipeline: str | Path) -> Language:
    import spacy

    try:
        return spacy.load(pipeline)
    except OSError as error:
        raise PipelineNotFoundError(
            f"no spaCy pipeline {str(pipeline)!r} here: install it with `python -m spacy download {pipeline}` (or pass "
            "the folder of one), or leave the argument out to use the pipeline that ships with this package"
        ) from error


def _check(nlp: Language) -> None:
    name = f"{nlp.meta.get('lang', '')}_{nlp.meta.get('name', '')}"
    try:
        doc = nlp(_PROBE)
    except Exception as error:
        raise ValueError(f"spaCy pipeline {name!r} cannot tag a sentence: {error}") from error
    wanted = {"POS": "parts of speech (POS)", "LEMMA": "lemmas (LEMMA)"}
    missing = [words for attribute, words in wanted.items() if not doc.has_annotation(attribute)]
    if missing:
        raise ValueError(
            f"spaCy pipeline {name!r} with components {nlp.pipe_names} gives no {' and no '.join(missing)}: "
            "add a morphologizer (or a tagger with an attribute_ruler) and a lemmatizer, or use another pipeline"
        )


def folder_fingerprint(folder: Path) -> str:
    """Return "name version sha256:..." over the files of a pipeline folder and the version of the extraction rules.

    Markdown files are left out: they do not change a tag. spaCy itself is not hashed.
    """
    digest = hashlib.sha256(f"rules {RULES_VERSION}\n".encode())
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix != ".md":
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return f"{meta.get('name')} {meta.get('version')} sha256:{digest.hexdigest()}"


def _unhashed_fingerprint(nlp: Language) -> str:
    meta = nlp.meta
    return f"{meta.get('lang')}_{meta.get('name')} {meta.get('version')} rules {RULES_VERSION} (unhashed)"
