"""The paper's keywords by spaCy: what they are, and that a hostile reply costs no other one anything."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

spacy = pytest.importorskip("spacy")

from spacy.lookups import Lookups  # noqa: E402

from robustrag_integrations.text.spacy_keywords import (  # noqa: E402
    SHIPPED_FOLDER,
    SpacyKeywordExtractor,
    hash_of_files,
)
from tests.text.test_crafted_words import LIKE  # noqa: E402

extract = SpacyKeywordExtractor()


# What the keywords are


def test_keywords_are_lemmas_phrases_and_the_whole_reply() -> None:
    assert extract("The capital cities are old places.") == {
        "capital", "city", "old", "place", "capital city", "old place", "capital cities are old places",
    }  # fmt: skip


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
    for word in ("cities", "the"):
        with suppress(ValueError):  # where spaCy reads another word
            mine(f"the {LIKE[word]}")
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
