"""The paper's keywords (appendix "Implementation of keyword extraction"): words and phrases by spaCy's parts of speech.

The keywords of a reply are

1. the lemma of every informative word: ADJ ADV NOUN NUM PROPN SYM X; of a name also the word as written;
2. the keyphrases: informative words in a row with nothing uninformative between them, nouns as lemmas;
3. the whole reply if it is short, so that equal answers match however they are tagged.

They are a function of that one reply, whatever was read before: one reply at a time, in a memory zone, which leaves
none of its words in the pipeline. The author of a passage can make words that spaCy's hashes confuse; that can cost
their own source's reply, and no other.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from robustrag_integrations._util.errors import missing
from robustrag_integrations.text.keywords import as_keyword, lines_of

if TYPE_CHECKING:
    from spacy.language import Language

INFORMATIVE = frozenset(("ADJ", "ADV", "NOUN", "NUM", "PROPN", "SYM", "X"))
MAX_WHOLE_WORDS = 12
SHIPPED_FOLDER = Path(__file__).with_name("pipeline")
_RULES = "paper/1"
_FIRST_SYMBOL = "IS_ALPHA"  # spaCy's id 1
_one_at_a_time = threading.RLock()


class SpacyKeywordExtractor:
    """The paper's keywords of one reply; needs the extra `keyword`. Threads take turns.

    Args:
        pipeline: None for the small English pipeline that ships with the package. Otherwise the name of an installed
            pipeline ("de_core_news_sm"), the folder of one, or a loaded one. Its components must not remember words.

    Attributes:
        fingerprint: name and version of pipeline and spaCy, and the SHA-256 of the files of one that is not loaded.
    """

    def __init__(self, pipeline: str | Path | Language | None = None) -> None:
        try:
            import spacy
        except ImportError as error:
            raise missing("the paper's keyword extractor needs spaCy", "keyword") from error
        if pipeline is None or isinstance(pipeline, (str, Path)):
            self._nlp = _loaded(str(pipeline or SHIPPED_FOLDER))
            files = hash_of_files(self._nlp.path)
        else:
            self._nlp, files = pipeline, "(unhashed)"
        meta = self._nlp.meta
        self.fingerprint = f"{meta['lang']}_{meta['name']} {meta['version']} {files} spacy {spacy.__version__} {_RULES}"
        # spaCy's maps go on pointing at a word of id 1 when its memory zone is over. One that stays is never freed.
        _ = self._nlp.vocab[_FIRST_SYMBOL]
        with _one_at_a_time, self._nlp.memory_zone():
            doc = self._nlp("Paris is the capital of France.")
            absent = [name for name in ("POS", "LEMMA") if not doc.has_annotation(name)]
        if absent:
            raise ValueError(f"spaCy pipeline {meta['lang']}_{meta['name']} gives no {' and no '.join(absent)}")

    def __call__(self, text: str, /) -> frozenset[str]:
        """The keywords of one reply; none for a reply without a letter, digit or symbol."""
        lines = lines_of(text)
        found = set(_whole_reply(lines))
        with _one_at_a_time:
            for _, component in self._nlp.pipeline:  # spaCy's lemmatizers keep lemmas, by ids that can be confused
                if isinstance(kept := getattr(component, "cache", None), dict):
                    kept.clear()
            with self._nlp.memory_zone():
                for line in lines:
                    found |= self._of_line(line)
        return frozenset(map(as_keyword, found)) - {""}

    def _of_line(self, line: str) -> set[str]:
        doc = self._nlp(line)
        if doc.text != line:
            raise ValueError(f"spaCy reads {doc.text!r:.80} in place of {line!r:.80}")
        found: set[str] = set()
        for informative, run in groupby(doc, key=lambda token: token.pos_ in INFORMATIVE):
            if informative:
                words = list(run)
                found.update(token.lemma_ for token in words)
                found.update(token.text for token in words if token.pos_ == "PROPN")
                if len(words) > 1:
                    written = [token.lemma_ if token.pos_ == "NOUN" else token.text for token in words]
                    found.add("".join(w + token.whitespace_ for w, token in zip(written, words, strict=True)))
        return found

    def __repr__(self) -> str:
        return f"SpacyKeywordExtractor({self.fingerprint})"


@cache
def _loaded(pipeline: str) -> Language:
    import spacy

    return spacy.load(pipeline)


def _whole_reply(lines: list[str]) -> list[str]:
    words = " ".join(lines).split()
    if len(words) > 1 and words[0].casefold() in ("the", "a", "an"):
        words = words[1:]
    return [" ".join(words)] if len(words) <= MAX_WHOLE_WORDS else []


def hash_of_files(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files; what is about the model and not of it is left out."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix != ".md" and file.name != "scores.json":
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return f"sha256:{digest.hexdigest()}"
