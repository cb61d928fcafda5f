"""The paper's keywords by spaCy: what they are, and that a hostile reply costs no other one anything."""

from __future__ import annotations

import random
import shutil
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest

spacy = pytest.importorskip("spacy")

from spacy.lookups import Lookups  # noqa: E402

from robustrag_integrations.text.keywords import (  # noqa: E402
    MAX_CHARACTERS,
    MAX_KEYWORD_CHARACTERS,
)
from robustrag_integrations.text.spacy_keywords import (  # noqa: E402
    SHIPPED_FOLDER,
    SpacyKeywordExtractor,
    hash_of_files,
)
from tests.helpers.crafted_words import word_like  # noqa: E402

extract = SpacyKeywordExtractor()


# What the keywords are


def test_keywords_are_lemmas_phrases_and_the_whole_reply() -> None:
    assert extract("The capital cities are old places.") == {
        "capital", "city", "old", "place", "capital city", "old place", "capital cities are old places",
    }  # fmt: skip


# Hostile replies

HOSTILE = {
    "100 kB of text": "The mayor of Springfield announced that taxes rise by 15% in 2024. " * 1500,
    "one 50 kB word": "a" * 50_000,
    "markup": "<b>" * 7000 + "Paris" + "</b>" * 7000,
    "combining marks": "e" + "\u0301\u0323\u0331" * 6000,
    "expanding ligatures": "\ufdfa" * 20_000,
    "control characters": "Par\x00is\x1b[31m is\x07 red\r\nand \x9b2J blue\u2028next\u202etxt\ufeff",
    "surrogates": "\ud800Paris\udfff",
    "separator": "Paris, London , Rome,Berlin ,, , and 1,200, 3,4",
    "empty": "",
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_replies_give_bounded_well_formed_keywords(reply: str) -> None:
    keywords = extract(reply)
    assert sum(map(len, keywords)) <= 10 * MAX_CHARACTERS
    for keyword in keywords:
        assert 0 < len(keyword) <= MAX_KEYWORD_CHARACTERS
        assert keyword == keyword.strip()
        assert "," not in keyword
        assert not any(unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp") for c in keyword)
        assert keyword.encode()


# A function of one reply


def _unheard_of_words(seed: int) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("bcdfgaeiou", k=9)).title() for _ in range(1500))


def test_words_of_earlier_replies_are_not_kept() -> None:
    nlp = spacy.load(SHIPPED_FOLDER)
    mine = SpacyKeywordExtractor(nlp)
    mine(_unheard_of_words(0))
    before = len(nlp.vocab.strings)
    assert _unheard_of_words(1).split()[0].lower() in mine(_unheard_of_words(1))
    assert len(nlp.vocab.strings) == before
    assert _unheard_of_words(1).split()[0] not in nlp.vocab.strings


def test_the_rule_lemmatizers_cache_is_emptied_between_replies() -> None:
    nlp = spacy.load(SHIPPED_FOLDER, exclude=["trainable_lemmatizer"])
    tables = Lookups()
    tables.add_table("lemma_rules", {"noun": [["ies", "y"], ["s", ""]], "propn": [["s", ""]], "verb": [["s", ""]]})
    tables.add_table("lemma_index", {"noun": {}, "propn": {}, "verb": {}})
    tables.add_table("lemma_exc", {"noun": {}, "propn": {}, "verb": {}})
    nlp.add_pipe("lemmatizer", config={"mode": "rule", "overwrite": True}).lookups = tables
    mine = SpacyKeywordExtractor(nlp)
    expected = mine("the cities")
    assert "city" in expected
    for word in ("cities", "Cities", "the", "city"):
        for number in range(4):
            with suppress(ValueError):  # where spaCy reads another word
                mine(f"the {word_like(word, number)}")
            assert mine("the cities") == expected


# Pipelines and their names


def test_a_pipeline_that_is_missing_or_without_tags_or_lemmas_is_refused() -> None:
    with pytest.raises(OSError, match="en_core_web_nonesuch"):
        SpacyKeywordExtractor("en_core_web_nonesuch")
    with pytest.raises(ValueError, match="gives no POS and no LEMMA"):
        SpacyKeywordExtractor(spacy.blank("en"))
    with pytest.raises(ValueError, match="gives no LEMMA"):
        SpacyKeywordExtractor(spacy.load(SHIPPED_FOLDER, exclude=["trainable_lemmatizer"]))


def test_the_fingerprint_changes_with_a_weight_but_not_with_the_documentation(tmp_path: Path) -> None:
    assert extract.fingerprint.startswith("en_robustrag-keywords 1.0.0 sha256:")
    assert f"spacy {spacy.__version__}" in extract.fingerprint
    copy = shutil.copytree(SHIPPED_FOLDER, tmp_path / "pipeline")
    (copy / "README.md").write_text("another text")
    assert SpacyKeywordExtractor(copy).fingerprint == extract.fingerprint
    weights = copy / "tok2vec" / "model"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    assert hash_of_files(copy) != hash_of_files(SHIPPED_FOLDER)


def test_the_shipped_pipeline_is_small_and_holds_no_pickle() -> None:
    files = [file for file in SHIPPED_FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 4_000_000
    assert not [file for file in files if file.suffix in (".pkl", ".pickle") or file.read_bytes()[:2] == b"\x80\x04"]
    assert {"README.md", "NOTICE.md"} <= {file.name for file in files}
