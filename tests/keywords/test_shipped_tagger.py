"""The shipped pipeline without spaCy's machinery: the same tags, for any number of threads at a time."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from string import ascii_letters

import numpy as np
import pytest
import spacy
import spacy.symbols
from spacy.attrs import NORM, SHAPE
from spacy.lang.norm_exceptions import BASE_NORMS
from spacy.strings import get_string_id
from thinc.api import NumpyOps

from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.languages import stop_words
from robustrag_integrations.keywords.murmur import four_keys, string_id
from robustrag_integrations.keywords.pipelines import SHIPPED_FOLDER, LazyShippedTagger
from robustrag_integrations.keywords.shipped_tagger import ShippedTagger
from robustrag_integrations.keywords.spacy_words import NORMS, SYMBOLS, norm, shape
from robustrag_integrations.keywords.tag_network import _NO_WORD, Floats
from robustrag_integrations.keywords.token_rules import Token

NLP = spacy.load(SHIPPED_FOLDER)
TAGGER = ShippedTagger(SHIPPED_FOLDER)
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


def test_no_pattern_splits_letters() -> None:
    """They are not looked for in letters of ASCII: special cases alone split those."""
    rules, rng = TAGGER._rules, random.Random(3)
    letters = [a + b + c for a in ascii_letters for b in ascii_letters for c in ascii_letters]
    words = [
        *letters,
        *ascii_letters,
        *("".join(rng.choices(ascii_letters, k=rng.randint(2, 40))) for _ in range(9999)),
    ]
    words += [chunk for chunk in rules._rules if chunk.isascii() and chunk.isalpha()]
    for word in words:
        assert not rules._prefix(word), word
        assert not rules._suffix(word), word
        assert not any(rules._infixes(word)), word
        assert not any(match(word) for match in rules._whole), word


def test_what_is_known_of_words_beforehand_is_what_spacy_knows() -> None:
    assert {name: number for number, name in enumerate(spacy.symbols.NAMES)} == SYMBOLS
    assert NORMS == BASE_NORMS
    getters, rng = NLP.vocab.lex_attr_getters, random.Random(2)
    texts = [*WORDS, *SYMBOLS, *NORMS, "x" * 100, "Xx" * 49, "aaaaAAAAA11111.....", "ǅ²٣"]
    texts += ["".join(rng.choices("aZ1é中😀.\u0301", k=length)) for length in range(1, 40)]
    for text in filter(None, texts):
        assert (norm(text), shape(text)) == (getters[NORM](text), getters[SHAPE](text)), text
        assert string_id(text) == get_string_id(text), text
        for seed in (0, 8, 2**32 - 1):
            keys = NumpyOps().hash(np.array([string_id(text)], np.uint64), seed)[0]
            assert four_keys(string_id(text), seed) == tuple(keys.tolist()), text
    assert string_id("") == get_string_id("")


def test_every_lemma_tree_gives_what_spacys_gives() -> None:
    theirs, ours = NLP.get_pipe("trainable_lemmatizer").trees, TAGGER._trees
    words = ["", "a", "went", "mice", "better", "isn't", "studies", "unties", "S", "'s", *WORDS[:40]]
    for number in range(len(theirs)):
        assert [ours.apply(number, word) for word in words] == [theirs.apply(number, word) for word in words], number


def test_keywords_are_read_without_importing_spacy() -> None:
    code = (
        "import sys\nfrom robustrag_integrations import SpacyKeywordExtractor\nextract = SpacyKeywordExtractor()\n"
        "assert 'paris' in extract('It is Paris.') and 'paris' in extract('Die Hauptstadt ist Paris.')\n"
        "print({'spacy', 'srsly', 'thinc', 'torch'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


@pytest.mark.parametrize("language", ["de", "fr", "ja", "th", "uk", "zh"])
def test_stop_words_are_those_of_spacy(language: str) -> None:
    theirs = import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS
    assert len({word.casefold() for word in theirs} - stop_words(language)) <= 10  # numbers alone are left out
    assert stop_words("no-such-language") < stop_words(language)
    assert stop_words("../stop_words/de") == stop_words("no-such-language")


def test_distant_words_move_no_bit_and_length_next_to_nothing() -> None:
    network, rng = TAGGER._network, random.Random(1)
    start = [Token(word) for word in WORDS[:10]]
    expected = [scores[:7] for scores in network.scores([start])[0]]
    for length in range(40):
        longer = [start + [Token(rng.choice(WORDS)) for _ in range(length)] for _ in range(2)]
        (one, other) = ([scores[:7] for scores in network.scores([line])[0]] for line in longer)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert all(np.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(one, expected, strict=True))


def test_lines_that_are_read_together_move_no_bit_of_each_other() -> None:
    network, rng = TAGGER._network, random.Random(2)
    for _ in range(20):
        lines = [[Token(rng.choice(WORDS)) for _ in range(rng.randrange(40))] for _ in range(rng.randrange(1, 30))]
        network._kept = {_NO_WORD: network._no_word}  # words are read together, too
        together = network.scores(lines)
        network._kept = {_NO_WORD: network._no_word}
        assert len(together) == len(lines)
        for line, found in zip(lines, together, strict=True):
            alone = network.scores([line])[0]
            assert all(np.array_equal(a, b) for a, b in zip(found, alone, strict=True))


def test_replies_that_are_read_together_have_the_keywords_of_each_alone() -> None:
    extract = SpacyKeywordExtractor()
    replies = [
        "Bo Ek",
        "",
        "Der Turm ist 30 Meter hoch.",
        "It costs $5.\n- twenty-one days\n- `a_b()`",
        "ボー・エク",
        "Bo Ek",
    ]
    assert extract.of_each(replies) == [extract(reply) for reply in replies]


def test_two_threads_are_inside_extraction_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    extract = SpacyKeywordExtractor()
    expected = extract("Paris is the capital."), extract("Oslo is the capital.")
    met, network = threading.Barrier(2), LazyShippedTagger.loaded()._network
    inside = network._scores

    def waiting(lines: Sequence[Sequence[Token]]) -> list[tuple[Floats, Floats]]:
        met.wait(timeout=10)  # raises where one thread waits for the other to come out
        return inside(lines)

    monkeypatch.setattr(network, "_scores", waiting)
    with ThreadPoolExecutor(2) as pool:
        found = tuple(pool.map(extract, ["Paris is the capital.", "Oslo is the capital."]))
    assert found == expected


def test_what_is_kept_of_words_is_bounded() -> None:
    tagger = ShippedTagger(SHIPPED_FOLDER)
    for number in range(3):
        tagger.tag([" ".join(f"w{number}x{i}" for i in range(3000))])
    assert len(tagger._network._kept) <= 4096
    for kept in (tagger._rules._tokens_of, tagger._lemma_by):
        assert kept.cache_info().currsize <= 4096
    assert tagger.tag(["Paris lies in France."]) == TAGGER.tag(["Paris lies in France."])
