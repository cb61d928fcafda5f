"""Abstentions are recognised by the meaning of the whole response, in many languages."""

from __future__ import annotations

import re
import time

import pytest

from robustrag_integrations.abstention import Abstention, _plain, is_abstention
from robustrag_integrations.abstention_words import DENIAL_HINTS, LATIN, WORDS
from robustrag_integrations.reply_text import answer_text, unboxed

ABSTAIN = [
    "This passage is unrelated to the question.",
    "The provided text is about something else entirely.",
    "The context is irrelevant.",
    "",
    "   ",
    "...",
    "I don't know",
    "I DO NOT KNOW!",
    "> I don't know.",
    "“I don’t know.”",
    "Answer: I don't know",
    "I'm sorry, but I can't answer that.",
    "The text does not mention the winner.",
    "The passage gives no date.",
    "Which team won is not stated.",
    "Nowhere in the article is the price given.",
    "It's unclear from the text.",
    "The winner isn't mentioned anywhere in the passage.",
    "I was unable to find the name in the document.",
    "There is not enough information to say.",
    "The context doesn't tell us who built it.",
    "Based on the information provided, I cannot tell who wrote the opera.",
    "The author never says where the ship sank.",
    "Sorry, no idea.",
    "Who won the race is not something the passage tells us.",
    "That is not specified in the source.",
    "We are not told who designed it.",
    "I have no information about that.",
    "The price remains undisclosed in the text.",
    "No answer.",
    "None of the passages mentions her age.",
    "I can't say.",
    "Hard to say from this text; it does not mention the year.",
    "Neither the title nor the author is mentioned.",
    "The provided context does not include any details regarding the founder of the company.",
    "Unfortunately the passage says nothing about it.",
    "The text is silent about the cost.",
    "Das steht nicht im Text.",
    "Der Text sagt nichts darüber, wer das Rennen gewann.",
    "Wer gewonnen hat, wird nicht erwähnt.",
    "Aus dem Text lässt sich das nicht entnehmen.",
    "Ich weiß es nicht.",
    "Unbekannt.",
    "Le texte ne dit pas qui a gagné.",
    "Je l'ignore.",
    "Aucune idée.",
    "On ne sait pas.",
    "El texto no dice quién ganó.",
    "No sé quién ganó.",
    "No se menciona.",
    "Il testo non dice chi ha vinto.",
    "Non è specificato.",
    "Nessuna idea.",
    "O texto não diz quem venceu.",
    "Não há informações sobre isso.",
    "Não se sabe.",
    "Tekst nie podaje, kto wygrał.",
    "Nie wiadomo.",
    "Brak danych na ten temat.",
    "В тексте не сказано, кто победил.",
    "Неизвестно.",
    "Ответ в тексте отсутствует.",
    "Metinde kimin kazandığı belirtilmemiş.",
    "Bilmiyorum.",
    "Bu konuda bilgi yok.",
    "Cevap metinde yer almıyor.",
    "لا أعلم.",
    "النص لا يذكر من فاز.",
    "لم يرد ذلك في النص.",
    "אינני יודע.",
    "הטקסט אינו מזכיר מי ניצח.",
    "לא ידוע.",
    "मुझे नहीं मालूम।",
    "पाठ में विजेता का उल्लेख नहीं है।",
    "जानकारी उपलब्ध नहीं है।",
    "不清楚。",
    "文中未提及获胜者。",
    "资料不足，无法回答。",
    "我不知道谁赢了。",
    "本文には勝者についての記載がありません。",
    "情報が不足しているため、回答できません。",
    "記載なし",
    "勝者は書かれていません。",
    "본문에는 승자가 언급되어 있지 않습니다.",
    "정보가 부족합니다.",
    "잘 모르겠습니다.",
    "ข้อความไม่ได้กล่าวถึงผู้ชนะ",
    "ไม่มีข้อมูล",
    "Văn bản không nói ai thắng.",
    "Không có thông tin.",
    "Dat staat niet in de tekst.",
    "Det framgår inte av texten.",
    '{"answer": null}',
    '{"answer": ""}',
    '```json\n{"answer": "not found"}\n```',
    "<think>hmm</think>",
    "<think>It says Karl. Or maybe",
    "\\boxed{\\text{unknown}}",
    "null",
    "None of the above is stated in the text.",
    "No relevant information.",
    "No hours are given.",
    "No formula appears in the text.",
    "No date can be found in the passage.",
    "There's no score in the text.",
    "Can't tell.",
    "The manual does not specify the torque.",
    "It's unknown whether it is effective.",
    "I'm afraid that's not in the passage.",
    "On ignore qui l'a construit.",
    "Jeg ved det ikke.",
    "Δεν αναφέρεται.",
    "Textul nu menționează.",
    "Tekstissä ei mainita sitä.",
    "A szöveg nem említi.",
]
ANSWER = [
    "The two events are unrelated.",
    "Unrelated to the war",
    "Karl Gross, although I don't know his title",
    "No.",
    "Yes",
    "None",
    "No, it is not allowed.",
    "It is not effective.",
    "Nobody.",
    "Nothing.",
    "No one won.",
    'The song is called "I Don\'t Know".',
    '"Unknown Pleasures"',
    "The album is Unknown Pleasures.",
    "Unknown Pleasures",
    "It was written by an unknown monk in 1123.",
    "The trial found no evidence of harm.",
    "He never told anyone.",
    "The company does not provide refunds.",
    "The museum does not give guided tours on Mondays.",
    "They could not agree.",
    "The bridge was not found until 1950.",
    "He was not identified as the thief until 1987.",
    "The tomb of the Unknown Soldier",
    "Not Paris but Rome.",
    "The ship was lost; nobody knows where.",
    "He did not answer the letter.",
    "She refused to say her name.",
    "The dog that did not bark",
    "No smoking.",
    "No information desk is open on Sundays.",
    "The tickets are not available online.",
    "It is not possible to swim there.",
    "Insufficient funds",
    "Lack of rain",
    "The law does not mention women, so yes.",
    "1837 (the month isn't given)",
    "Probably Karl Gross, I'm not sure.",
    "I think it's Oslo, but I don't know for certain.",
    "I know: it's Oslo.",
    "Das Medikament wirkt nicht.",
    "Nein, das ist nicht erlaubt.",
    "Keine.",
    "Nicht wirksam.",
    "Il ne fonctionne pas.",
    "Non, ce n'est pas autorisé.",
    "No está permitido.",
    "Nie, to zabronione.",
    "Нет, это запрещено.",
    "Не эффективен",
    "不允许。",
    "効果がない。",
    "効果はありません。",
    "허용되지 않습니다.",
    "ไม่ได้ผล",
    "Không hiệu quả.",
    "ไม่อนุญาต",
    "不是，他是木匠。",
    "いいえ、禁止されています。",
    "Nur Karl Gross wird genannt; sein Alter nicht.",
    "Nulla.",
    "Nessuno.",
    "Nadie.",
    "Personne.",
    "Niemand.",
    "لا، غير مسموح",
    "לא, אסור",
    "नहीं, यह मना है।",
    "Hayır, yasak.",
    "Etkili değil.",
    "Não.",
    "Het is niet toegestaan.",
    "404 Not Found",
    "Rien.",
    "Error 404",
    "--no-data",
    "The prize went to I Don't Know by Tess Ray.",
    "The winning title was *I Don't Know*.",
    "None of the sailors survived.",
    "He was unable to attend.",
    "No fee is charged.",
    "There is no toll on the bridge.",
    "No hay peaje.",
    "Não há pedágio.",
    "Non c'è pedaggio.",
    "Es gibt keine Maut.",
    "لا توجد رسوم.",
    "कोई शुल्क नहीं है।",
    "통행료는 없습니다.",
    "ไม่มีค่าผ่านทาง",
    "The report does not name the culprit until page 40: it is Ruth Kane.",
    "Η Καβάλα, αν και δεν αναφέρεται το έτος.",
]


@pytest.mark.parametrize("response", ABSTAIN)
def test_a_response_that_says_nothing_else_abstains(response: str) -> None:
    assert is_abstention(response)


@pytest.mark.parametrize("response", ANSWER)
def test_a_response_that_says_something_of_its_own_answers(response: str) -> None:
    assert not is_abstention(response)


def test_phrases_of_the_user_abstain_beside_the_known_ones() -> None:
    own = Abstention(("Computer says no", "kein Plan"))
    assert all(map(own, ("Computer says no.", "Kein Plan!", "I don't know.")))
    assert not any(map(own, ("The computer says no to Karl.", "Karl. Kein Planer.")))
    assert not is_abstention("Kein Plan!")


def test_a_phrase_must_be_a_string() -> None:
    with pytest.raises(TypeError, match="phrases"):
        Abstention("no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "response",
    [
        *("not " * 5000, "no " * 600, "the text " * 220, "ไม่" * 600, "nein nicht " * 180, "n't " * 500, "没有" * 900),
        *("," * 2000, "<think>" * 3000, '{"answer":' * 3000, "\\boxed{" * 3000, "(" * 2000, "नहीं " * 400, "لا " * 600),
    ],
)
def test_hostile_responses_take_little_time(response: str) -> None:
    start = time.perf_counter()
    is_abstention(response)
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Paris", "Paris"),
        ("<think>Lyon? I don't know.</think>\nParis", "\nParis"),
        ("So it is Lyon.</think>Paris", "Paris"),
        ("Paris <think>or is it", "Paris "),
        ('{"answer": "Paris", "confidence": 0.9}', "Paris"),
        ('```json\n{"answer": ["Paris", "Lyon"]}\n```', "Paris\nLyon"),
        ('{"city": "Paris", "note": "I don\'t know since when"}', "Paris"),
        ('{"answer": true}', "yes"),
        ('{"answer": 4608}', "4608"),
        ('{"answer": null}', ""),
        ("{not json}", "{not json}"),
    ],
)
def test_the_answer_is_taken_out_of_what_a_model_sends(reply: str, answer: str) -> None:
    assert answer_text(reply) == answer


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\boxed{4608}", "4608"),
        (r"\boxed{4608\ \text{pallets}}", "4608 pallets"),
        (r"The answer is \boxed{x_{12}}.", "The answer is x12."),
        (r"\boxed{open", "open"),
        ("$5 and $6", "$5 and $6"),
    ],
)
def test_boxed_answers_are_unboxed(text: str, plain: str) -> None:
    assert " ".join(unboxed(text).split()) == plain


def test_a_reply_in_latin_letters_without_a_hint_of_a_denial_is_read_no_further() -> None:
    # `DENIAL_HINTS` is a shortcut: whatever the words of a language deny holds one.
    for response in ABSTAIN:
        plain = _plain(unboxed(answer_text(response)))
        if any(WORDS[language].denies and re.search(WORDS[language].denies, plain) for language in LATIN):
            assert DENIAL_HINTS.search(plain)
