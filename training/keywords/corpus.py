"""UD English-EWT as data: CoNLL-U in, spaCy training examples out."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from robustrag_integrations.text.keywords import plain_characters


@dataclass(frozen=True)
class Word:
    """One syntactic word: surface form, lemma, universal part of speech, and its place in the tree."""

    form: str
    lemma: str
    pos: str
    space_after: bool
    head: int = 0
    relation: str = ""


Sentence = tuple[Word, ...]


def read_conllu(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a gzipped CoNLL-U file; empty nodes are skipped, multiword tokens keep their parts."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        block: list[list[str]] = []
        for line in lines:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                block.append(line.split("\t"))
            elif not line and block:
                yield _sentence(block)
                block = []
        if block:
            yield _sentence(block)


def _sentence(rows: list[list[str]]) -> Sentence:
    glued: set[int] = set()  # words followed by no space although their own row does not say so
    words = []
    multiword_end, multiword_glued = 0, False
    for columns in rows:
        index, form, lemma, pos, misc = columns[0], columns[1], columns[2], columns[3], columns[9]
        if "." in index:
            continue
        if "-" in index:
            start, multiword_end = map(int, index.split("-"))
            multiword_glued = "SpaceAfter=No" in misc
            glued.update(range(start, multiword_end))
            continue
        number = int(index)
        no_space = "SpaceAfter=No" in misc or number in glued or (number == multiword_end and multiword_glued)
        form = plain_characters(form) or form
        words.append(
            Word(form, with_case_of(form, lemma), pos, not no_space, int(columns[6]), columns[7].split(":")[0])
        )
    return tuple(words)


def with_case_of(form: str, lemma: str) -> str:
    """Return the lemma with the letter case of the form.

    Keywords are case-folded, so the lemmatizer need not learn letter case, and has more examples for every other
    edit tree.
    """
    lemma = plain_characters(lemma) or lemma
    shared = "".join(
        ours if ours.lower() == theirs.lower() else theirs for ours, theirs in zip(form, lemma, strict=False)
    )
    return shared + lemma[len(shared) :]


def lowered(sentence: Sentence) -> Sentence:
    """Return the sentence in lower case."""
    return tuple(replace(word, form=word.form.lower(), lemma=word.lemma.lower()) for word in sentence)


def to_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """Return the sentence as a Doc with gold words, spaces, parts of speech and lemmas."""
    return Doc(
        vocab,
        words=[word.form for word in sentence],
        spaces=[word.space_after for word in sentence[:-1]] + [False],
        pos=[word.pos for word in sentence],
        lemmas=[word.lemma for word in sentence],
    )


def to_example(vocab: Vocab, sentence: Sentence) -> Example:
    """Return a training example whose predicted side has the gold words and nothing else."""
    gold = to_doc(vocab, sentence)
    bare = Doc(vocab, words=[word.form for word in sentence], spaces=[bool(token.whitespace_) for token in gold])
    return Example(bare, gold)
