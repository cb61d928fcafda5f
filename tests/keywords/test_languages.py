"""Replies in many languages meet where they say the same, and small words do not count."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.dates import find_dates
from robustrag_integrations.keywords.languages import language_of

extract = SpacyKeywordExtractor()

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


@pytest.mark.parametrize(
    ("answer", "replies"),
    [
        ("weilburg", ["Es liegt in Weilburg.", "Die Stadt heißt Weilburg.", "Weilburg"]),
        ("gasthaus", ["Es war ein Gasthaus.", "In den Räumen des alten Gasthauses.", "Gasthaus"]),
        ("3. mai 1951".replace(".", ""), ["Am 3. Mai 1951.", "Es geschah am 03.05.1951 in der Stadt."]),
        ("2450", ["Il y a 2 450 habitants dans la ville.", "C'est 2.450 selon le texte.", "2450"]),
        ("7 de abril de 1923", ["Fue el 7 de abril de 1923.", "La fecha es 07/04/1923."]),
        ("inondation", ["À cause de l'inondation.", "Des inondations ont tout détruit."]),
        ("рыбинск", ["Он живёт в Рыбинске.", "Это город Рыбинск.", "из Рыбинска"]),
        ("东京", ["东京", "它在东京的南部。", "他们搬到了东京。"]),
        ("東京", ["東京です", "東京都です。", "首都は東京にあります。"]),
        ("1975年6月2日", ["1975年6月2日です。", "開業は１９７５年６月２日でした。", "它于1975年6月2日开放。"]),
        ("成都", ["成都", "答案是成都。", "它位于成都。"]),
        ("土耳其", ["土耳其", "答案是土耳其。", "他出生在土耳其的南部。"]),
        ("埃及", ["埃及", "答案是埃及。", "埃及和以色列"]),
        ("华为", ["华为", "这家公司是华为。"]),
        ("都柏林", ["都柏林", "答案是都柏林。"]),
        ("12万", ["人口约为12万。", "有12万人"]),
        ("3.5キロメートル", ["長さは3.5キロメートルです。", "3.5キロメートル"]),
        ("1500 บาท", ["ราคา 1,500 บาท", "1,500 บาท"]),
        ("sao paulo", ["São Paulo", "Sao Paulo", "Ele mora em São Paulo."]),
        ("lodz", ["Łódź", "Lodz", "Urodził się w mieście Łódź."]),
        ("erdogan", ["Erdoğan", "Erdogan"]),
        ("4200000", ["£4.2 million", "4.2 mn", "4,2 million"]),
        ("£5", ["£5", "5 pounds"]),
        ("18 tb", ["18 TB", "18 terabytes"]),
        ("3000", ["3 000", "3\u202f000", "3,000", "3'000"]),
        ("1234567", ["1'234'567", "1,234,567", "1 234 567"]),
        ("105", ["one hundred and five", "105"]),
        ("2500", ["two thousand five hundred", "2,500"]),
        ("2300000", ["two million three hundred thousand", "2.3 million"]),
        ("3.5 مليون", ["٣٫٥ مليون", "3.5 مليون"]),
        ("34.5 m", ["34,5 m", "Sięga 34,5 m w najgłębszym miejscu.", "34.5 m"]),
        ("€12.50", ["12,50 €", "€12.50", "Das kostet 12,50 €.", "Cela coûte 12,50 €."]),
        ("€12.5", ["12,50 €", "Das kostet 12,50 €.", "EUR 12,50", "Es kostet EUR 12,50."]),
        ("€100", ["100 Euro", "Es kostet 100 Euro.", "Cuesta 100 euros.", "EUR 100", "Cuesta EUR 100."]),
        (
            "€5000000",
            ["€5 million", "5 Mio. €", "5 Millionen Euro", "5.000.000 €", "Es kostet 5 Mio. Euro.", "5 млн евро"],
        ),
        ("€3 billion", ["3 milliards d'euros", "3 mil millones de euros", "3 Mrd. Euro", "It cost 3 billion euros."]),
        ("1250", ["~1,250", ">1,250", "$1{,}250$"]),
        ("5 may 1931", ["5-May-1931", "5 May 1931"]),
        ("-5°c", ["-5 degrees C", r"$-5^\circ\text{C}$", "−5 °C"]),
        ("karl gross", ["Karl Gross¹", "Karl Gross²."]),
        ("50 chf", ["CHF 50", "50 CHF", "Es kostet CHF 50.", "Es kostet 50 CHF."]),
        (
            "12.5%",
            ["12,5 %", "12,5 Prozent", "Der Anteil lag bei 12,5 Prozent.", "El 12,5 por ciento de la población."],
        ),
        ("€1234.50", ["1.234,50 €", "€1,234.50", "Es kostet 1.234,50 €."]),
        ("ঢাকা", ["ঢাকা", "এটি ঢাকা।", "উত্তর হল ঢাকা।"]),
        ("부산", ["부산입니다.", "그는 부산에서 태어났다.", "부산"]),
        ("ซอมบูรี", ["อยู่ที่ซอมบูรี", "ซอมบูรี", "คำตอบคือ ซอมบูรี"]),
        ("حلب", ["حلب", "يقع المتحف في حلب.", "وُلد بحلب."]),
        ("חיפה", ["חיפה", "הוא גר בחיפה.", "העיר היא חיפה."]),
        ("đà lạt", ["Đà Lạt", "Chợ nằm ở Đà Lạt.", "Đó là thành phố Đà Lạt."]),
    ],
)
def test_replies_that_say_the_same_meet(answer: str, replies: list[str]) -> None:
    for reply in replies:
        assert answer in extract(reply), (reply, sorted(extract(reply)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("one hundred", "one hundred thousand"),
        ("5 MW", "5 mW"),
        ("CHF 5", "€5"),
        ("都柏林", "柏林"),
        ("答案是都柏林。", "答案是柏林。"),
        ("5 Billionen Euro", "5 Milliarden Euro"),
        ("5 km²", "5 km"),
        ("≤5", "≥5"),
        ("1'234'567", "1'999'000"),
        ("3 000", "3"),
    ],
)
def test_other_amounts_do_not_meet(one: str, other: str) -> None:
    assert not (extract(one) & extract(other)) - {"5"}


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "pt", "pl", "ru", "tr", "he", "ar"])
def test_small_words_of_a_language_do_not_count(language: str) -> None:
    from robustrag_integrations.keywords.languages import stop_words

    found = {word for keyword in extract(SENTENCES[language]) for word in [keyword] if " " not in keyword}
    assert not found & stop_words(language)


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("臺灣", "台湾"),
        ("他在中華民國。", "中华民国"),
        ("他後來住在臺北。", "台北"),
        ("國立臺灣大學", "国立台湾大学"),
    ],
)
def test_traditional_and_simplified_characters_meet(traditional: str, simplified: str) -> None:
    assert simplified in extract(traditional) & extract(simplified)


def test_japanese_keeps_its_characters() -> None:
    assert "東京" in extract("首都は東京です。") & extract("東京")
    assert "东京" not in extract("首都は東京です。")
    assert not extract("北京") & extract("東京")


def test_an_answer_in_traditional_characters_is_shown_once() -> None:
    defense = ConsensusAggregation(CallableModel(lambda prompt: "臺灣"))
    assert defense.answer("哪裡？", ["臺灣"] * 5).text == "臺灣"


def test_a_setting_overrides_the_language() -> None:
    assert "der" not in SpacyKeywordExtractor(language="de")("der Karl Gross der")


def test_the_same_reply_gives_the_same_keywords_whatever_was_read_before() -> None:
    before = {language: extract(sentence) for language, sentence in SENTENCES.items()}
    for language, sentence in reversed(SENTENCES.items()):
        assert extract(sentence) == before[language]


@pytest.mark.parametrize(
    ("one", "other"), [("No.", "No, never."), ("Nein.", "Nein, das ist verboten."), ("Да.", "Да, можно.")]
)
def test_a_leading_yes_or_no_meets(one: str, other: str) -> None:
    assert extract(one) & extract(other)


def test_items_of_a_list_and_clauses_of_prose_are_phrases() -> None:
    listed = extract("- born in Weilburg in 1950\n- studied law and music\n- wrote four plays\n- died at sea")
    assert {"born in weilburg in 1950", "studied law and music", "wrote four plays", "died at sea"} <= listed
    prose = extract(
        "She was born in Weilburg, she studied law and music; later on she wrote four plays and died at sea."
    )
    assert {"she was born in weilburg", "she studied law and music"} <= prose


def test_a_name_that_spacy_lists_as_a_small_word_counts() -> None:
    assert {"علي", "أحمد علي"} <= extract("أحمد علي")


@pytest.mark.parametrize(
    ("one", "other"), [("一百人", "一百万人"), ("三十座", "三十二座"), ("B♭ major", "B major"), ("C♯", "C")]
)
def test_a_numeral_is_not_taken_apart_and_signs_of_keys_count(one: str, other: str) -> None:
    extract = SpacyKeywordExtractor()
    distinct = [keyword for keyword in extract(one) & extract(other) if keyword != "major"]
    assert distinct == []


def test_a_letter_is_no_abbreviation() -> None:
    assert "20 e" in SpacyKeywordExtractor()("10 N, 20 E")
    assert not any("email" in keyword for keyword in SpacyKeywordExtractor()("10 N, 20 E"))


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("Der Laden öffnet heute nicht.", "nicht öffnet"),
        ("De brug opent niet.", "niet opent"),
        ("पुल अभी खुला नहीं है।", "नहीं खुला"),
        ("다리는 열려 있지 않습니다.", "안 열려"),
        ("다리는 안 열려 있다.", "안 열려"),
        ("สะพานไม่เปิด", "ไม่เปิด"),
    ],
)
def test_a_negation_stands_with_its_verb(said: str, denied: str) -> None:
    found = SpacyKeywordExtractor()(said)
    assert denied in found
    assert denied.split()[-1] not in found or denied == "ไม่เปิด"


@pytest.mark.parametrize(
    "line", ["Das kostet 5 Millionen Euro.", "Il coûte 3 milliards d'euros.", "Cuesta 5 mil millones."]
)
def test_scale_words_in_letters_that_patterns_take_for_others_are_read(line: str) -> None:
    written = find_dates(line, "de")[0]
    assert len(written) > 1
    for letter in "\u0131\u0130":
        assert find_dates(line.replace("i", letter), "de")[0] == written
