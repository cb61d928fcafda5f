"""Your own spaCy pipelines: what they remember, how threads share them, and what happens when they fail."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.lookups import Lookups
from spacy.tokens import Doc

from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.pipelines import SHIPPED_FOLDER
from tests.helpers.crafted_words import word_like


def with_rule_lemmas() -> Language:
    """The shipped tagger with spaCy's rule lemmatizer, which keeps the lemmas that it has found."""
    nlp = spacy.load(SHIPPED_FOLDER, exclude=["trainable_lemmatizer"])
    lemmatizer = nlp.add_pipe("lemmatizer", config={"mode": "rule", "overwrite": True})
    tables = Lookups()
    tables.add_table("lemma_rules", {"noun": [["ies", "y"], ["s", ""]], "propn": [["s", ""]], "verb": [["s", ""]]})
    tables.add_table("lemma_index", {"noun": {}, "propn": {}, "verb": {}})
    tables.add_table("lemma_exc", {"noun": {}, "propn": {}, "verb": {}})
    lemmatizer.lookups = tables
    return nlp


def test_the_rule_lemmatizers_cache_is_emptied_between_responses() -> None:
    nlp = with_rule_lemmas()
    extract = SpacyKeywordExtractor(nlp)
    expected = extract("the cities")
    assert "city" in expected
    for word in ("cities", "Cities", "the", "city"):
        for number in range(4):
            extract(f"the {word_like(word, number)}")
            assert nlp.get_pipe("lemmatizer").cache == {}
            assert extract("the cities") == expected


class Remembers:
    """A component that counts the words it has seen."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def __call__(self, doc: Doc) -> Doc:
        for token in doc:
            self.seen[token.text] = self.seen.get(token.text, 0) + 1
        return doc


class Forgets:
    """A component that makes a table when it is first used, and keeps that."""

    def __init__(self) -> None:
        self.table: dict[str, int] = {}

    def __call__(self, doc: Doc) -> Doc:
        self.table.update({"a": 1, "b": 2})
        return doc


Language.factory("remembers", func=lambda nlp, name: Remembers())
Language.factory("forgets", func=lambda nlp, name: Forgets())


def test_a_pipeline_that_remembers_words_is_refused_with_the_reason() -> None:
    nlp = spacy.load(SHIPPED_FOLDER)
    nlp.add_pipe("remembers", name="counter")
    with pytest.raises(ValueError, match=r"remembers what it has read \(in counter\.seen\).*remove that component"):
        SpacyKeywordExtractor(nlp)


def test_a_component_that_fills_a_table_once_is_not_refused() -> None:
    nlp = spacy.load(SHIPPED_FOLDER)
    nlp.add_pipe("forgets")
    assert "paris" in SpacyKeywordExtractor(nlp)("Paris")


def test_extractors_that_share_a_pipeline_take_turns() -> None:
    nlp = spacy.load(SHIPPED_FOLDER)
    inside, most = 0, 0

    @Language.component("counts_threads")
    def counts_threads(doc: Doc) -> Doc:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.002)
        inside -= 1
        return doc

    nlp.add_pipe("counts_threads")
    responses = [f"Wordsmith{number} lives in Zandoria{number}." for number in range(40)]
    alone = SpacyKeywordExtractor(SHIPPED_FOLDER)
    expected = [alone(response) for response in responses]
    found: dict[int, Any] = {}

    def read(number: int) -> None:
        extract = SpacyKeywordExtractor(nlp)
        found[number] = [extract(response) for response in responses]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [expected] * 4
    assert most == 1


def test_a_pipeline_that_fails_on_one_response_reads_the_next() -> None:
    nlp = spacy.load(SHIPPED_FOLDER)

    @Language.component("fails")
    def fails(doc: Doc) -> Doc:
        if "fail" in doc.text:
            raise RuntimeError("planted")
        return doc

    nlp.add_pipe("fails")
    extract = SpacyKeywordExtractor(nlp)
    expected = extract("Paris")
    with pytest.raises(RuntimeError, match="planted"):
        extract("Do fail")
    assert not nlp.vocab.in_memory_zone
    assert extract("Paris") == expected
