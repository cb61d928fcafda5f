"""Words made to have a chosen hash: they break no extraction, and nothing of them reaches a later response."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import spacy
from spacy.strings import get_string_id

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.pipelines import SHIPPED_FOLDER, user_tagger
from robustrag_integrations.keywords.string_ids import without_crafted_words
from tests.helpers.crafted_words import hash64, word_like, word_with_hash

extract = SpacyKeywordExtractor()
NLP = spacy.load(SHIPPED_FOLDER)

ZERO = "fKQjJdXLWpczOPVM"
ONE = "iNJeQZnRgezCOxmT"
PHRASE_END = 826361138722620965  # where spaCy's phrase matcher ends a phrase
TWINS = [word_with_hash(0x0123456789ABCDEF, number) for number in range(2)]
SYMBOL = word_with_hash(get_string_id("NOUN"))
SUFFIX = word_like("'s")
SPECIAL = word_like("don't")

HOSTILE = [
    ZERO,
    f"The answer is {ZERO}.",
    f"{ONE} {ONE}",
    f"Paris is {ONE}, and {ONE} is Paris.",
    "IS_ALPHA",
    "IS_ALPHA or IS_ASCII or NOUN",
    " ".join(TWINS),
    f"{TWINS[1]} {TWINS[0]}",
    f"{TWINS[0]}-{TWINS[1]}",
    f"http://{TWINS[0]}.com/{TWINS[1]}?x={ZERO}",
    f"x{TWINS[0]}.y/z({TWINS[1]})",
    f"a-{ONE}-b/{ONE}",
    f"{ZERO.swapcase()} {ONE.lower()}",
    f"{SYMBOL} NOUN",
    f"John{SUFFIX} {SUFFIX} John's",
    f"They {SPECIAL} know, we don't {SPECIAL}-{SPECIAL}",
    f"{word_like('Paris')} is Paris",
    f"Paris is {word_like('Paris')}",
    f"{word_like('paris')} Paris {word_like('Xxxxx')}",
    f"Lord of the {word_with_hash(PHRASE_END)} {word_with_hash(PHRASE_END)}",
    " ".join(word_with_hash(7 << 32, number) for number in range(30)),
]
HONEST = [
    "Paris is the capital of France.",
    "The runners don't know John's cities.",
    "IS_ALPHA is the first of spaCy's symbols; NOUN is another.",
    "It is Mount Everest, in Nepal.",
    "27 May 1990",
]


def test_words_with_a_chosen_hash_can_be_made() -> None:
    assert get_string_id(ZERO.lower()) == hash64(ZERO.lower())
    assert hash64(ZERO) == 0
    assert get_string_id(ONE) == 1
    assert len({get_string_id(word) for word in TWINS}) == 1
    assert get_string_id(word_like("Paris")) == get_string_id("Paris")


@pytest.mark.parametrize("response", HOSTILE)
def test_crafted_words_are_keywords_like_any_other(response: str) -> None:
    keywords = extract(response)
    assert keywords
    assert all(keyword == " ".join(keyword.split()) for keyword in keywords)


def test_what_a_crafted_word_collides_with_keeps_its_meaning() -> None:
    assert "paris" in extract(f"{word_like('Paris')} is Paris")
    assert "paris" not in extract(f"It is {word_like('Paris')}.")
    assert extract(TWINS[0]) != extract(TWINS[1])
    assert {word.casefold() for word in TWINS} <= extract(" ".join(TWINS))
    assert "IS_ALPHA" in extract("IS_ALPHA")


def test_which_words_are_replaced_is_a_function_of_the_response() -> None:
    strings = user_tagger(SHIPPED_FOLDER).language.vocab.strings
    one, other = TWINS
    shown = [line.text for line in without_crafted_words([f"{one} {other} {one}", other], strings)]
    assert shown == [f"{one} {'x' * 16} {one}", "x" * 16]
    assert without_crafted_words([other], strings)[0].text == other


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("extract", [extract, SpacyKeywordExtractor(NLP)], ids=["shipped", "own"])
def test_a_hostile_response_changes_nothing_about_later_ones(extract: SpacyKeywordExtractor, hostile: str) -> None:
    expected = [extract(response) for response in HONEST]
    own, strings = extract(hostile), len(NLP.vocab.strings)
    assert [extract(response) for response in HONEST] == expected
    for other in HOSTILE:
        extract(other)
    assert extract(hostile) == own
    assert [extract(response) for response in HONEST] == expected
    assert len(NLP.vocab.strings) == strings


def test_a_fresh_process_finds_the_same_in_another_order() -> None:
    program = (
        "import json, sys; from robustrag_integrations.keywords import SpacyKeywordExtractor as E; e = E();"
        "print(json.dumps([sorted(e(t)) for t in json.load(sys.stdin)]))"
    )
    responses = [*HONEST, *HOSTILE]
    found = [sorted(extract(response)) for response in responses]
    given = json.dumps(responses[::-1])
    done = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[::-1] == found


@pytest.mark.parametrize("hostile", [ZERO, f"{ONE} {ONE}", " ".join(TWINS), "IS_ALPHA"])
def test_a_crafted_word_costs_no_answer_and_no_certificate(hostile: str) -> None:
    def model(prompt: str) -> str:
        return hostile if "planted" in prompt else "Paris"

    defense = KeywordAggregation(CallableModel(model))
    passages = ["It is Paris."] * 6
    answer = defense.answer("Where?", ["planted", *passages])
    assert (answer.text, [g.status for g in answer.groups].count("supports")) == ("Paris", 6)
    certificate = defense.certify("Where?", passages, "Paris")
    assert certificate.certified
    assert certificate.tau == 1
    assert defense.certify("Where?", ["planted", *passages], "Paris").certified
