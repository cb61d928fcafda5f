"""Items of lists: phrases even if they are single words, where single words of prose are not."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.keywords.lists import items_of_lists

TOWNS = ["paris", "london", "rome", "berlin"]
LISTS = {
    "commas": ("Paris, London, Rome, Berlin", TOWNS),
    "and": ("Paris, London, Rome and Berlin.", TOWNS),
    "in a sentence": ("The cities are Paris, London, Rome, and Berlin.", TOWNS),
    "subject": ("Paris, London, Rome and Berlin are the cities in question.", TOWNS),
    "semicolons": ("Cities: Paris; London; Rome; Berlin", TOWNS),
    "bullets": ("- Paris\n- London\n- Rome\n- Berlin", TOWNS),
    "stars": ("Here they are:\n\n* **Paris**\n* **London**\n* **Rome**\n* **Berlin**\n\nI hope this helps.", TOWNS),
    "explained": ("1. Paris - the capital\n2. London: big\n3. Rome (old)\n4. Berlin", TOWNS),
    "numbers": ("1. Paris\n2. London\n3. Rome\n4. Berlin", TOWNS),
    "numbers in a line": ("1) Paris 2) London 3) Rome 4) Berlin", TOWNS),
    "lines": ("Paris\nLondon\nRome\nBerlin", TOWNS),
    "lemmas": ("They grow apples, pears, cherries and plums.", ["apple", "pear", "cherry", "plum"]),
    "German": ("Die Städte sind Paris, London, Rom und Berlin.", ["paris", "london", "rom", "berlin"]),
    "German bullets": ("- Äpfel\n- Birnen\n- Kirschen", ["äpfel", "birnen", "kirschen"]),
    "French": ("Ce sont Paris, Londres, Rome et Berlin.", ["paris", "londres", "rome", "berlin"]),
    "Russian": ("Париж, Лондон, Рим и Берлин", ["париж", "лондон", "рим", "берлин"]),
    "Japanese": ("都市は東京、大阪、京都と名古屋です。", ["東京", "大阪", "京都", "名古屋"]),
    "Japanese bullets": ("・東京\n・大阪\n・京都", ["東京", "大阪", "京都"]),
    "Chinese": ("城市有北京、上海、广州和深圳。", ["北京", "上海", "广州", "深圳"]),
    "Korean": ("서울, 부산, 대구, 광주", ["서울", "부산", "대구", "광주"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_every_item_that_most_groups_list_is_retained_in_long_form(name: str) -> None:
    listed, items = LISTS[name]

    def model(prompt: str) -> str:
        return "Oslo, Quito, Lima and Cusco" if "other" in prompt else listed

    defense = KeywordAggregation(CallableModel(model), task="long_form")
    answer = defense.answer("Which ones?", ["It says so."] * 8 + ["the other one"] * 2)
    said = next(group.keywords for group in answer.groups if group.index == 0)
    assert set(items) <= set(said)
    assert all(any(item in keyword for keyword in answer.evidence["retained"]) for item in items)


@pytest.mark.parametrize(
    "prose",
    [
        "The bridge was opened by the mayor.",
        "He lives in Paris, France, with his wife.",
        "However, Paris is large, and it is old.",
        "Karl was born in Rome, moved to Oslo, and died there.",
        "She sang and he danced.",
    ],
)
def test_single_words_of_prose_do_not_count_in_long_form(prose: str) -> None:
    reader = KeywordAggregation(CallableModel(lambda prompt: prose), task="long_form").settings.reader
    assert all(" " in keyword for keyword in reader._keywords(prose) or ())


HOSTILE = ["a, " * 7000, "- a\n" * 5000, " and" * 5000, "、" * 20000, "1. " * 6000, "東京、" * 6000]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lists_take_linear_time(hostile: str) -> None:
    start = time.process_time()
    assert len(list(items_of_lists(hostile))) <= 100
    assert time.process_time() - start < 2


def test_slashes_hold_items_together_and_an_apposition_is_no_list() -> None:
    assert list(items_of_lists("Paris/London")) == ["Paris", "London"]
    assert not list(items_of_lists("5 km/h"))
    assert not list(items_of_lists("A tall man, a doctor, came."))
