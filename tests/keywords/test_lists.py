"""Items of lists: phrases even if they are single words, where single words of prose are not."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, SpacyKeywordExtractor
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


ENGLISH = list(LISTS)[: list(LISTS).index("German")]


@pytest.mark.parametrize("name", LISTS)
def test_every_item_of_a_list_counts_where_single_words_do_not(name: str) -> None:
    listed, items = LISTS[name]
    defense = KeywordAggregation(CallableModel(lambda prompt: listed), min_words=2)
    reader = defense.settings.reader.for_question("Which ones?")
    counted = reader.keys_of(listed)
    assert counted is not None
    assert {reader.runs(item).whole for item in items} <= counted.keys


@pytest.mark.parametrize("name", ENGLISH)
def test_every_item_of_a_list_counts_in_the_papers_long_form(name: str) -> None:
    listed, items = LISTS[name]
    model = CallableModel(lambda prompt: listed)
    defense = KeywordAggregation(model, task="long_form", extractor=SpacyKeywordExtractor())
    counted = defense.settings.reader.for_question("Which ones?").keys_of(listed)
    assert counted is not None
    assert set(items) <= counted.keys
    answer = defense.answer("Which ones?", ["It says so."] * 8)
    shown = " ".join(answer.evidence["retained"]).casefold()
    assert all(item[:-1] in shown for item in items)  # "cherry" may be shown as "cherries"


def test_items_that_most_groups_list_are_kept_in_whichever_order() -> None:
    orders = ["Paris, Rome", "Rome and Paris", "- Paris\n- Rome", "Rome; Paris", "Oslo, Lima"]
    model = CallableModel(lambda prompt: next((o for i, o in enumerate(orders) if f"passage {i}." in prompt), "done"))
    defense = KeywordAggregation(model, task="list", min_support=4)
    answer = defense.answer("Which ones?", [f"passage {i}." for i in range(5)])
    assert answer.evidence["retained"] == ["Paris", "Rome"]


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
def test_single_words_of_prose_do_not_count_where_two_are_asked_for(prose: str) -> None:
    reader = KeywordAggregation(CallableModel(lambda prompt: prose), min_words=2).settings.reader
    said = reader.keys_of(prose)
    assert said is not None
    assert all(" " in keyword for keyword in said.keys)


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
