"""Score a keyword pipeline on UD English-EWT and print a table.

$ python training/keywords/evaluate.py --data ../shared/data
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import spacy
from augment import fragments
from corpus import Sentence, lowered, read_conllu, to_doc
from spacy.language import Language
from spacy.tokens import Doc

from robustrag_integrations.text.spacy_keywords import INFORMATIVE

SHIPPED = Path(__file__).parents[2] / "robustrag_integrations" / "text" / "pipeline"


@dataclass(frozen=True)
class Scores:
    """Accuracies on gold tokens, 0..1; lemmas are compared without case, as keywords are."""

    informative: float
    upos: float
    lemma: float

    def __str__(self) -> str:
        return f"informative {self.informative:.2%}, UPOS {self.upos:.2%}, lemma {self.lemma:.2%}"


def _tagged(nlp: Language, sentences: Iterable[Sentence]) -> Iterable[Doc]:
    bare = (
        Doc(nlp.vocab, words=[w.form for w in s], spaces=[w.space_after for w in s[:-1]] + [False]) for s in sentences
    )
    return nlp.pipe(bare, batch_size=64)


def gold_token_scores(nlp: Language, sentences: Sequence[Sentence]) -> Scores:
    """Return the accuracies per gold token."""
    total = informative = upos = lemma = 0
    for sentence, doc in zip(sentences, _tagged(nlp, sentences), strict=True):
        for word, token in zip(sentence, doc, strict=True):
            total += 1
            upos += word.pos == token.pos_
            informative += (word.pos in INFORMATIVE) == (token.pos_ in INFORMATIVE)
            lemma += word.lemma.casefold() == token.lemma_.casefold()
    return Scores(informative / total, upos / total, lemma / total)


def own_token_informative(nlp: Language, sentences: Sequence[Sentence]) -> float:
    """Return the share of non-space characters marked correctly when the pipeline tokenises the text itself."""
    right = total = 0
    gold = [to_doc(nlp.vocab, sentence) for sentence in sentences]
    for truth, doc in zip(gold, nlp.pipe([doc.text for doc in gold], batch_size=64), strict=True):
        expected, got = _mask(truth), _mask(doc)
        marked = [(e, g) for e, g, c in zip(expected, got, truth.text, strict=True) if not c.isspace()]
        right += sum(e == g for e, g in marked)
        total += len(marked)
    return right / total


def _mask(doc: Doc) -> list[bool]:
    mask = [False] * len(doc.text)
    for token in doc:
        mask[token.idx : token.idx + len(token.text)] = [token.pos_ in INFORMATIVE] * len(token.text)
    return mask


def fragment_exact(nlp: Language, sentences: Sequence[Sentence], *, lower: bool = False) -> float:
    """Return the share of noun phrases, tagged out of context, whose informative mask is right in every word."""
    phrases = [lowered(f) if lower else f for sentence in sentences for f in fragments(sentence)]
    right = sum(
        all((w.pos in INFORMATIVE) == (t.pos_ in INFORMATIVE) for w, t in zip(phrase, doc, strict=True))
        for phrase, doc in zip(phrases, _tagged(nlp, phrases), strict=True)
    )
    return right / len(phrases)


def main() -> None:
    """Print every score on the test set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with ewt-test.conllu.gz")
    parser.add_argument("--pipeline", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    nlp = spacy.load(arguments.pipeline)
    test = list(read_conllu(arguments.data / "ewt-test.conllu.gz"))
    scores = gold_token_scores(nlp, test)
    size = sum(file.stat().st_size for file in arguments.pipeline.rglob("*") if file.is_file())
    print(f"EWT test: {len(test)} sentences, {sum(map(len, test))} words; pipeline of {size / 1e6:.2f} MB")
    rows = {
        "informative or not, gold tokens": f"{scores.informative:.2%}",
        "informative or not, own tokens (per character)": f"{own_token_informative(nlp, test):.2%}",
        "UPOS, gold tokens": f"{scores.upos:.2%}",
        "lemma (ignoring case), gold tokens": f"{scores.lemma:.2%}",
        "noun phrases out of context, whole mask right": f"{fragment_exact(nlp, test):.2%}",
        "the same in lower case": f"{fragment_exact(nlp, test, lower=True):.2%}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
