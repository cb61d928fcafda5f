"""The plain extractor: content words, keyphrases and short pieces of a reply."""

from __future__ import annotations

import pytest

from robustrag_integrations.text.keywords import WordExtractor


@pytest.mark.parametrize(
    ("reply", "keywords"),
    [
        ("It is Mount Everest.", {"mount", "everest", "mount everest"}),
        ("The answer is: Paris, France", {"paris", "france"}),
        ("the island of Sorra", {"island", "sorra", "island of sorra"}),
        ("- red mill\n- blue barn", {"red", "mill", "red mill", "blue", "barn", "blue barn"}),
        ("Die Stadt ist Paris.", {"stadt", "paris", "stadt ist paris"}),
        ("东京是日本的首都。北京", {"东京是日本的首都", "北京"}),
        ("No", {"no"}),
        ("", set()),
    ],
)
def test_keywords_of_a_reply(reply: str, keywords: set[str]) -> None:
    assert WordExtractor()(reply) == keywords


def test_a_denial_counts() -> None:
    assert {"not", "not encrypted", "encrypted"} <= WordExtractor()("Backups are not encrypted.")


def test_a_long_piece_counts_by_its_words_and_phrases_alone() -> None:
    found = WordExtractor()(" ".join(f"word{i} of" for i in range(20)))
    assert found == {f"word{i}" for i in range(20)}
