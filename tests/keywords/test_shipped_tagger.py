"""The shipped pipeline without spaCy's machinery: the same tags, for any number of threads at a time."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spacy

from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.pipelines import SHIPPED_FOLDER, LazyShippedTagger
from robustrag_integrations.keywords.shipped_tagger import ShippedTagger
from robustrag_integrations.keywords.tag_network import TagNetwork
from robustrag_integrations.keywords.token_rules import Token

NLP = spacy.load(SHIPPED_FOLDER)
TAGGER = ShippedTagger(NLP)
WORDS = listed(
    "the The capital of France Paris cities mice went is isn't don't don’t can't cannot won't've U.S. U.K.'s e.g. Mr. "
    "Ph.D. 10a.m. 9pm 8:30 $5.30 €30 5% 20°C 1,000.5 10km 3rd C++ C# a/b a-b-c x_y foo!bar http://x.com/a?b=c a@b.co "
    "(a) [b] {c} :) :-( (^_^) :'( ... … — – -- “hi” ''x'' `y` 'em 'Cause O'Brien rock'n'roll y'all gonna ma'am I'd've "
    "NOUN X obj 日本 Москва São naïve ß ﬁ x\u0301 😀 👩\u200d👩 \u200b ½ ' \" . , ?! ) ( : - &amp; <b> #tag co. No."
)


def _lines(count: int) -> list[str]:
    rng = random.Random(0)
    blanks = [" "] * 12 + ["  ", "\t", " \n", "", ""]
    return [
        "".join(rng.choice(WORDS) + rng.choice(blanks) for _ in range(rng.randint(1, 15))) + rng.choice(["", " ", "."])
        for _ in range(count)
    ]


def test_tokens_tags_and_lemmas_are_those_of_spacy() -> None:
    for line in ["", " ", "Paris", *_lines(300)]:
        with NLP.memory_zone():
            expected = [(t.text, t.lemma_, t.pos_, t.idx) for t in NLP(line) if not t.is_space]
        assert [(w.text, w.lemma, w.pos, w.start) for w in TAGGER.tag([line])[0]] == expected, line


def test_neither_length_nor_distant_words_move_a_bit() -> None:
    network, rng = TagNetwork(NLP), random.Random(1)
    start = [Token(word) for word in WORDS[:10]]
    expected = [scores[:7] for scores in network.scores(start)]
    for length in range(40):
        longer = start + [Token(rng.choice(WORDS)) for _ in range(length)]
        found = [scores[:7] for scores in network.scores(longer)]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_two_threads_are_inside_extraction_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    extract = SpacyKeywordExtractor()
    expected = extract("Paris is the capital."), extract("Oslo is the capital.")
    met, network = threading.Barrier(2), LazyShippedTagger.loaded()._network
    inside = network._scores

    def waiting(tokens: list[Token]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        met.wait(timeout=10)  # raises where one thread waits for the other to come out
        return inside(tokens)

    monkeypatch.setattr(network, "_scores", waiting)
    with ThreadPoolExecutor(2) as pool:
        found = tuple(pool.map(extract, ["Paris is the capital.", "Oslo is the capital."]))
    assert found == expected


def test_what_is_kept_of_words_is_bounded() -> None:
    tagger = ShippedTagger(NLP)
    for number in range(3):
        tagger.tag([" ".join(f"w{number}x{i}" for i in range(3000))])
    for kept in (tagger._network._word, tagger._rules._tokens_of):
        assert kept.cache_info().currsize <= 4096
    assert tagger.tag(["Paris lies in France."]) == TAGGER.tag(["Paris lies in France."])
