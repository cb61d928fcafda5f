"""Words made to have a chosen hash: they can cost their own reply, and nothing of them reaches a later one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

spacy = pytest.importorskip("spacy")

from spacy.strings import get_string_id  # noqa: E402

from robustrag_integrations import CallableModel, KeywordAggregation  # noqa: E402
from robustrag_integrations.text.spacy_keywords import SHIPPED_FOLDER, SpacyKeywordExtractor  # noqa: E402

extract = SpacyKeywordExtractor()
NLP = spacy.load(SHIPPED_FOLDER)

# As an attacker makes them, undoing spaCy's hash step by step: words of 0, of 1 (a symbol's), and of one hash.
ZERO, ONE = "fKQjJdXLWpczOPVM", "iNJeQZnRgezCOxmT"
TWINS = ["hcauzVSiwHHxBbfP", "MghJWngVAqzBfhNC"]
LIKE = {
    "NOUN": "ldrdeszqYodtnRSg", "'s": "XAipSDZAvLdxdczJ", "don't": "RdQsglOhbydjZpEd", "Paris": "ueHauVDbWLwORrAE",
    "paris": "jkxowXfABGqofIbj", "Xxxxx": "BjDwErVqfCgdYnKe", "cities": "yAasncvfylvpZxXB", "the": "HJfiLuTCIkqGuiJT",
}  # fmt: skip
PHRASE_END = "qbFFdQpRIrgCxaqT"  # where spaCy's phrase matcher ends a phrase
SAME = ["XzneznnuaUkZoADk", "ViqSFcNdUYKinTJe", "UZJAmPZJPNTxMWdw", "aqntpVnqCGecSSAK"]

HOSTILE = [
    ZERO,
    f"{ONE} {ONE}",
    f"Paris is {ONE}, and {ONE} is Paris.",
    "IS_ALPHA or IS_ASCII or NOUN",
    " ".join(TWINS),
    f"http://{TWINS[0]}.com/{TWINS[1]}?x={ZERO}",
    f"x{TWINS[0]}.y/z({TWINS[1]})",
    f"{LIKE['NOUN']} NOUN",
    "John{0} {0} John's".format(LIKE["'s"]),
    "They {0} know, we don't {0}-{0}".format(LIKE["don't"]),
    f"{LIKE['Paris']} is Paris",
    f"{LIKE['paris']} Paris {LIKE['Xxxxx']}",
    f"Lord of the {PHRASE_END} {PHRASE_END}",
    " ".join(SAME * 8),
]
HONEST = [
    "Paris is the capital of France.",
    "The runners don't know John's cities.",
    "IS_ALPHA is the first of spaCy's symbols; NOUN is another.",
    "It is Mount Everest, in Nepal.",
]


def test_the_words_have_these_hashes() -> None:
    assert get_string_id(ONE) == 1
    assert [len({get_string_id(word) for word in words}) for words in (TWINS, SAME)] == [1, 1]
    assert all(get_string_id(word) == get_string_id(like) for word, like in LIKE.items())


def read(extract: SpacyKeywordExtractor, reply: str) -> frozenset[str] | None:
    """Its keywords; None where spaCy confuses its words, as for a reply that cannot be read."""
    try:
        return extract(reply)
    except (AssertionError, IndexError, KeyError, SystemError, ValueError):
        return None


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("extract", [extract, SpacyKeywordExtractor(NLP)], ids=["shipped", "own"])
def test_a_hostile_reply_changes_nothing_about_later_ones(extract: SpacyKeywordExtractor, hostile: str) -> None:
    expected = [extract(reply) for reply in HONEST]
    own, strings = read(extract, hostile), len(NLP.vocab.strings)
    assert [extract(reply) for reply in HONEST] == expected
    for other in HOSTILE:
        read(extract, other)
    assert read(extract, hostile) == own
    assert [extract(reply) for reply in HONEST] == expected
    assert len(NLP.vocab.strings) == strings
    assert not NLP.vocab.in_memory_zone


def test_a_word_that_spacy_takes_for_another_one_says_nothing() -> None:
    assert "paris" not in (read(extract, f"It is {LIKE['Paris']}.") or ())
    for twins in (f"{LIKE['Paris']} is Paris", " ".join(TWINS), f"{ONE} {ONE}"):
        with pytest.raises(ValueError, match="spaCy reads"):
            extract(twins)


def test_a_fresh_process_finds_the_same_in_another_order() -> None:
    program = (
        "import json, sys; from tests.text.test_crafted_words import extract, read\n"
        "print(json.dumps([(found := read(extract, t)) and sorted(found) for t in json.load(sys.stdin)]))"
    )
    replies = [*HONEST, *HOSTILE]
    found = [(keywords := read(extract, reply)) and sorted(keywords) for reply in replies]
    given = json.dumps(replies[::-1])
    done = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[::-1] == found


@pytest.mark.parametrize("hostile", [ZERO, f"{ONE} {ONE}", " ".join(TWINS), "IS_ALPHA"])
def test_a_crafted_word_costs_no_answer_and_no_certificate(hostile: str) -> None:
    def model(prompt: str) -> str:
        return hostile if "planted" in prompt else "Paris"

    defense = KeywordAggregation(CallableModel(model), extractor=extract)
    passages = ["It is Paris."] * 6
    answer = defense.answer("Where?", ["planted", *passages])
    assert (answer.text, [g.status for g in answer.sources].count("supports")) == ("Paris", 6)
    certificate = defense.certify("Where?", passages, "Paris")
    assert certificate.certified
    assert certificate.tau == 1
    assert defense.certify("Where?", ["planted", *passages], "Paris").certified
