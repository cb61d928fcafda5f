"""Which language a reply is in, and its small words."""

from __future__ import annotations

from importlib import import_module

import pytest

from robustrag_integrations.text.languages import _OF_SCRIPT, _PROFILES, _STOP_WORDS, language_of, stop_words

SENTENCES = {
    "en": "The bridge was built by the town in the spring.",
    "de": "Die Brücke wurde von der Stadt im Frühling gebaut.",
    "fr": "Le pont a été construit par la ville au printemps.",
    "es": "El puente fue construido por la ciudad en la primavera.",
    "it": "Il ponte fu costruito dalla città nella primavera.",
    "pt": "A ponte foi construída pela cidade na primavera.",
    "pl": "Most został zbudowany przez miasto na wiosnę i nie jest to tajemnicą.",
    "tr": "Köprü ilkbaharda şehir tarafından yapıldı ve çok güzel.",
    "vi": "Cây cầu được thành phố xây dựng vào mùa xuân.",
    "ru": "Мост был построен городом весной.",
    "ar": "بنت المدينة الجسر في الربيع.",
    "he": "הגשר נבנה על ידי העיר באביב.",
    "hi": "पुल वसंत में शहर द्वारा बनाया गया था।",
    "zh": "这座桥是市政府在春天建造的。",
    "ja": "この橋は春に市が建設しました。",
    "ko": "이 다리는 봄에 시에서 지었습니다.",
    "th": "สะพานนี้สร้างโดยเมืองในฤดูใบไม้ผลิ",
}


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items())
def test_the_language_of_a_reply_is_found(language: str, sentence: str) -> None:
    assert language_of(sentence) == language


def test_a_bare_name_is_in_no_known_language() -> None:
    assert language_of("Karl Gross") is None


def test_there_is_a_list_for_each_language_that_is_found_and_for_no_other() -> None:
    lists = {file.stem for file in _STOP_WORDS.glob("*.txt")}
    assert lists == {*_PROFILES, *_OF_SCRIPT.values()}


@pytest.mark.parametrize("language", ["de", "fr", "ja", "th", "uk", "zh"])
def test_stop_words_are_those_of_spacy(language: str) -> None:
    pytest.importorskip("spacy")
    theirs = import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS
    assert len({word.casefold() for word in theirs} - stop_words(language)) <= 10  # numbers alone are left out
    assert stop_words("no-such-language") < stop_words(language)
    assert stop_words("../stop_words/de") == stop_words("no-such-language")
