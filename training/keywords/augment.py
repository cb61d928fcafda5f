"""Augmentation with sentences like a language model's answers: fragments, frames, lower case, several in a row."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from corpus import Sentence, Word, lowered

NAMING = {"NOUN", "PROPN", "NUM", "ADJ"}
ARGUMENTS = {"nsubj", "obj", "obl", "nmod", "root", "conj", "appos", "nummod", "amod"}
STOP = Word(".", ".", "PUNCT", False)


@dataclass(frozen=True)
class AugmentationRates:
    """Probabilities, per source sentence unless stated otherwise."""

    lower_case: float = 0.15
    no_final_stop: float = 0.15
    joined: float = 0.15
    fragment: float = 0.5  # per fragment, at most two fragments a sentence
    framed: float = 0.25  # of the fragments kept


def _frame(text: str) -> Sentence:
    """Read "It/PRON/it is/AUX/be" as words."""
    return tuple(Word(form, lemma, pos, True) for form, pos, lemma in (item.split("/") for item in text.split()))


FRAMES = [
    _frame(text)
    for text in (
        "It/PRON/it is/AUX/be",
        "It/PRON/it was/AUX/be",
        "The/DET/the answer/NOUN/answer is/AUX/be",
        "They/PRON/they are/AUX/be",
        "That/PRON/that would/AUX/would be/AUX/be",
        "This/PRON/this is/AUX/be called/VERB/call",
        "By/ADP/by",
        "In/ADP/in",
        "Yes/INTJ/yes ,/PUNCT/,",
        "According/VERB/accord to/ADP/to",
    )
]


def fragments(sentence: Sentence, longest: int = 8) -> list[Sentence]:
    """Return the contiguous noun phrases (subtrees of naming words in argument position) of a sentence."""
    children: dict[int, list[int]] = defaultdict(list)
    for number, word in enumerate(sentence, start=1):
        children[word.head].append(number)
    found = []
    for number, word in enumerate(sentence, start=1):
        if word.pos not in NAMING or word.relation not in ARGUMENTS:
            continue
        span = _subtree(number, children)
        if span[-1] - span[0] + 1 != len(span) or len(span) > longest:
            continue
        phrase = _trimmed(sentence[span[0] - 1 : span[-1]])
        if phrase:
            found.append(phrase)
    return found


def _subtree(root: int, children: dict[int, list[int]]) -> list[int]:
    reached, frontier = [], [root]
    while frontier:
        number = frontier.pop()
        reached.append(number)
        frontier.extend(children[number])
    return sorted(reached)


def _trimmed(phrase: Sentence) -> Sentence:
    while phrase and phrase[0].pos in ("ADP", "SCONJ", "CCONJ", "PUNCT"):
        phrase = phrase[1:]
    while phrase and phrase[-1].pos == "PUNCT":
        phrase = phrase[:-1]
    return phrase


def _dressed(fragment: Sentence, rates: AugmentationRates, rng: random.Random) -> Sentence:
    """Return the fragment as an answer might be written: capitalised, stopped, framed or in lower case."""
    words = [*fragment[:-1], replace(fragment[-1], space_after=False)]
    framed = rng.random() < rates.framed
    if framed:
        words = [*rng.choice(FRAMES), *words]
    elif rng.random() < 0.5:
        words[0] = _capitalised(words[0])
    if rng.random() < 0.35:
        words.append(STOP)
    return lowered(tuple(words)) if rng.random() < 0.15 else tuple(words)


def _capitalised(word: Word) -> Word:
    return replace(word, form=word.form[:1].upper() + word.form[1:], lemma=word.lemma[:1].upper() + word.lemma[1:])


def augmented(sentences: Sequence[Sentence], rates: AugmentationRates, seed: int) -> Iterator[Sentence]:
    """Yield every sentence and its variants; the same seed yields the same sequence."""
    rng = random.Random(seed)
    previous: Sentence = ()
    for sentence in sentences:
        yield sentence
        if rng.random() < rates.lower_case:
            yield lowered(sentence)
        if sentence[-1].form in (".", "!", "?") and len(sentence) > 2 and rng.random() < rates.no_final_stop:
            yield (*sentence[:-2], replace(sentence[-2], space_after=False))
        if previous and rng.random() < rates.joined and len(previous) + len(sentence) <= 60:
            yield (*previous[:-1], replace(previous[-1], space_after=True), *sentence)
        found = fragments(sentence)
        rng.shuffle(found)
        yield from (_dressed(f, rates, rng) for f in found[:2] if rng.random() < rates.fragment)
        previous = sentence
