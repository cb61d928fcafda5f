"""Loading spaCy pipelines, checking that they can be used, and naming them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.keywords.rules import RULES_VERSION
from robustrag_integrations.keywords.tagging import CACHE, Tagger, lock_of
from robustrag_integrations.keywords.words import TaggedWord

if TYPE_CHECKING:
    from spacy.language import Language

    from robustrag_integrations.keywords.shipped_tagger import ShippedTagger

SHIPPED_FOLDER = Path(__file__).with_name("pipeline")
_PROBE = "Paris is the capital of France."
# Words that no pipeline has read before: what remembers words holds more after the second than after the first.
_UNHEARD_OF = ("The grelbins of Zandoria were snorvled.", "A vloomish quibblefrax has drenched Yorvath.")
_WANTED = {"POS": "parts of speech (POS)", "LEMMA": "lemmas (LEMMA)"}


class PipelineNotFoundError(RobustRAGError, OSError):
    """The spaCy pipeline that was asked for is not installed."""


class LazyShippedTagger:
    """The pipeline that ships with the package; loaded on first use and shared by the whole process."""

    _loading = threading.RLock()
    _loaded: ShippedTagger | None = None

    def tag(self, lines: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of every line, as `ShippedTagger.tag` does."""
        return self.loaded().tag(lines)

    @property
    def is_there(self) -> bool:
        """Whether it is loaded."""
        return self._loaded is not None

    @property
    def fingerprint(self) -> str:
        """Name, version and hash; read from the files once, without loading the pipeline."""
        return _shipped_fingerprint()

    @classmethod
    def loaded(cls) -> ShippedTagger:
        """Return the one tagger of the process; nobody waits for anybody once it is there."""
        if cls._loaded is None:
            from robustrag_integrations.keywords.shipped_tagger import ShippedTagger

            with cls._loading:
                if cls._loaded is None:
                    cls._loaded = ShippedTagger(SHIPPED_FOLDER)
        return cls._loaded


@cache
def _shipped_fingerprint() -> str:
    return folder_fingerprint(SHIPPED_FOLDER)


def user_tagger(pipeline: str | Path | Language) -> Tagger:
    """Load (if need be) and check a pipeline.

    Raises:
        ImportError: spaCy is not installed.
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
    try:
        import spacy
    except ImportError as error:
        raise ImportError(
            f"spaCy pipeline {str(pipeline)!r} needs spaCy: pip install 'robustrag-integrations[keyword]', or leave "
            "the argument out to use the pipeline that ships with this package"
        ) from error
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
        with lock_of(nlp), nlp.memory_zone():
            doc = nlp(_PROBE)
            missing = [words for attribute, words in _WANTED.items() if not doc.has_annotation(attribute)]
            first, second = [(nlp(text), _sizes(nlp))[1] for text in _UNHEARD_OF]
    except Exception as error:
        raise ValueError(f"spaCy pipeline {name!r} cannot tag a sentence: {error}") from error
    if missing:
        raise ValueError(
            f"spaCy pipeline {name!r} with components {nlp.pipe_names} gives no {' and no '.join(missing)}: "
            "add a morphologizer (or a tagger with an attribute_ruler) and a lemmatizer, or use another pipeline"
        )
    if grown := [place for place, size in second.items() if size > first.get(place, 0)]:
        raise ValueError(
            f"spaCy pipeline {name!r} remembers what it has read (in {' and '.join(grown)}), so that the keywords of "
            "one response would depend on earlier ones; remove that component, or make it forget"
        )


def _sizes(nlp: Language) -> dict[str, int]:
    """How much each part of a pipeline holds in collections of its own; what `Tagger` clears is left out."""
    parts: list[tuple[str, Any]] = [("tokenizer", nlp.tokenizer), *nlp.pipeline]
    return {
        f"{name}.{attribute}": len(held)
        for name, part in parts
        for attribute, held in getattr(part, "__dict__", {}).items()
        if isinstance(held, (dict, list, set)) and attribute != CACHE
    }


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
