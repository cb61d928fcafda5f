"""Abstentions are recognised by the meaning of the whole response, in many languages."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations.abstention import Abstention, _language, _plain, is_abstention
from robustrag_integrations.abstention_words import DENIAL_HINTS, LATIN
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
    "I don't know [1].",
    "The passage does not mention the winner [1][2].",
    "The text gives no year 【3†source】.",
    "The passage does not name the winner. It only mentions the participants.",
    "I'm sorry, I don't have that information. Is there anything else I can help with?",
    "I don't know. Could you provide more context?",
    "I'd need more information to answer.",
    "No details are given about the cost.",
    "The passage mentions the bridge but not who built it.",
    "While the passage mentions the bridge, it does not say who built it.",
    "The passage mentions several races; however, it does not state the winner of the 2015 race.",
    "The passage discusses the founding of the town and does not include the requested information.",
    "My apologies, but this isn't in the text.",
    "The information requested is not in the passage.",
    "There isn't enough information in the passage.",
    "There's no way to tell from the passage.",
    "The author is unknown according to the passage.",
    "Short answer: not stated.",
    "The passage seems unrelated to the question.",
    "This passage is about the history of tea, so it doesn't answer the question.",
    "I have not found any information about the founder.",
    "Not explicitly stated in the passage.",
    "The answer to this question is not in the passage.",
    "The passage is too vague.",
    "Looking at the passage, there is no mention of the winner.",
    "More information is needed.",
    "Could you please provide more details? The passage does not contain the answer.",
    "I don't know.\n\nExplanation: The passage does not mention the winner of the race.",
    "Answer: I don't know.\nReason: not in text.",
    "The passage does not mention the year.\n\nTherefore, I don't know.",
    "Der Text behandelt Brücken und ich weiß es nicht.",
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
    "The passage states that no one survived.",
    "The cause of the fire was never determined.",
    "It contains no gluten.",
    "He had no idea that the bridge was closed.",
    "Nothing was found in the tomb.",
    "The tomb contained nothing.",
    "It has no windows.",
    "Karl Gross [1], but the text does not give his title [2].",
    "The passage says that Karl Gross won, but it does not give his title.",
    "The letter lies in box [12].",
]


# Denials that speak of a text, of what was asked for, or of whoever answers.
OF_A_SOURCE = """
The date is not included.
The price is not listed.
The location is not clear.
The year is missing.
The answer is missing from the text.
It is not available.
That is not included in the passage.
The reason is not clear.
The winner's name is not listed.
What caused it is not clear.
It is not clear who won.
The name is absent.
The required information is missing.
As a language model I do not have that information.
As an AI assistant, I'm unable to answer.
El texto no contiene la respuesta.
No contiene el nombre.
El documento no incluye esa información.
El pasaje no habla de eso.
No tengo información.
No tengo idea.
No se encuentra en el texto.
No se puede saber.
No puedo saberlo.
No existe información al respecto.
El texto trata de puentes y no da la fecha.
El texto no tiene esa información.
No aparece en el texto.
No aparece.
El fragmento no permite responder.
No queda claro.
No se sabe.
Nadie lo sabe, el texto no lo dice.
La respuesta no está en el texto.
Lo siento, pero no puedo responder a esa pregunta.
No lo da.
Il testo non contiene la risposta.
Non ho informazioni.
Non ho idea.
Il brano non parla di questo.
Non è possibile rispondere.
Non posso rispondere.
Il documento non include la data.
Il testo non fa riferimento al nome.
Non esistono informazioni.
Non si trova nel testo.
Non si sa.
Non compare nel testo.
Il contesto non permette di rispondere.
O texto não contém a resposta.
Não tenho informações.
Não é possível determinar.
O documento não inclui o nome.
O trecho não fala disso.
Não foi mencionado.
Não foi informado no texto.
A resposta não está no texto.
Não há informação.
Não se sabe.
O texto não tem essa informação.
Não posso responder.
Não está claro.
Não foi possível encontrar a resposta.
O contexto não permite responder.
Não encontrei a resposta.
Le texte ne contient pas la réponse.
Le texte ne parle pas de cela.
Le document ne donne pas la date.
Le passage ne permet pas de répondre.
L'extrait n'inclut pas cette information.
Il n'y a pas d'information.
Le texte n'offre aucune réponse.
Ce n'est pas dans le texte.
Ce texte n'a pas la réponse.
Der Text enthält die Antwort nicht.
Der Abschnitt enthält keine Angaben dazu.
Der Text enthält keine Information.
Das Dokument beinhaltet das nicht.
Die Antwort ist im Text nicht enthalten.
Der Name fehlt.
k.A.
Tekst nie zawiera odpowiedzi.
Tekst nie mówi o tym.
Dokument nie ma takich informacji.
Nie ma informacji.
Nie ma o tym mowy.
Metin bu bilgiyi içermiyor.
Belge yanıtı içermez.
De tekst bevat het antwoord niet.
De tekst bevat geen datum.
De passage geeft geen antwoord.
Texten innehåller inte svaret.
Văn bản không bao gồm thông tin này.
Thông tin không nằm trong văn bản.
Текст не содержит ответа.
В тексте об этом не говорится.
Документ не содержит этой информации.
Ничего об этом не сказано.
Неизвестен.
Неизвестный
Ничего не известно.
В тексте ничего нет.
Не имею информации.
النص لا يحتوي على الإجابة.
الوثيقة لا تتضمن هذه المعلومات.
הטקסט אינו מכיל את התשובה.
המסמך לא כולל מידע זה.
पाठ में यह जानकारी शामिल नहीं है।
本文にその情報は含まれていません。
答えは文書に含まれていない。
본문에 해당 정보가 포함되어 있지 않습니다.
문서에 답이 포함되어 있지 않습니다.
i dunno
As an AI language model, I cannot answer that.
No info available
Not enough info
It's anyone's guess.
Your guess is as good as mine.
I refuse to answer.
I must decline.
TBD
No results found.
Not in text
k. A.
Non saprei
Ingen aning
Не знам
نمی‌دانم
مجھے نہیں معلوم
I don’t know; whether cycling is allowed isn't covered here.
""".strip().splitlines()
# The same verbs, of things.
OF_A_THING = """
The shop is not open.
Parking is not available.
Pets are not included.
Smoking is not permitted.
The sky is not clear.
The hotel is not listed.
The museum is not covered.
The dog is missing.
The keys are missing.
Three children are missing.
He is absent.
Refunds are not available.
The king was not present.
The pool is not available in winter.
No one was responsible.
The castle no longer exists.
There is no evidence of life on Mars.
It does not rain there.
El museo no abre los lunes.
Ana no conoce a Pedro.
No encontraron oro.
El rey no pudo viajar.
No existe vida en Marte.
El tren no viene.
El precio no incluye el IVA.
La tienda no acepta tarjetas.
El hotel no ofrece desayuno.
El coche no tiene gasolina.
No, el puente no está abierto.
El lago no se encuentra en España.
Nadie.
No hay playa.
No deja propina.
L'hotel non offre la colazione.
Il treno non viene.
Il castello non esiste più.
Anna non conosce Pietro.
Il prezzo non include l'IVA.
Non ha figli.
Non può viaggiare.
La macchina non ha benzina.
O hotel não oferece café da manhã.
A ponte não está aberta.
O museu não abre às segundas.
O preço não inclui impostos.
Ele não pode voar.
O castelo não existe mais.
Ana não conhece Pedro.
O trem não vem.
L'hôtel n'offre pas de petit-déjeuner.
Le château n'existe plus.
Le prix ne comprend pas la TVA.
Anna ne connaît pas Pierre.
Le train ne vient pas.
Il n'a pas d'argent.
L'eau ne contient pas de plomb.
Das Hotel bietet kein Frühstück.
Der Zug kommt nicht.
Das Wasser enthält kein Blei.
Anna kennt Peter nicht.
Das Schloss existiert nicht mehr.
Die Brücke ist nicht offen.
Der Hund fehlt.
Er hat keinen Führerschein.
Hotel nie oferuje śniadania.
Zamek nie istnieje.
Woda nie zawiera ołowiu.
Pociąg nie przyjedzie.
Su kurşun içermez.
Otel kahvaltı sunmuyor.
Köprü açık değil.
Kale artık yok.
Отель не предлагает завтрак.
Вода не содержит свинца.
Замок не существует.
Анна не знает Петра.
Поезд не придёт.
Мост не открыт.
Ничего не украли.
Неизвестный художник.
الفندق لا يقدم الإفطار.
الجسر ليس مفتوحا.
המלון אינו כולל ארוחת בוקר.
הגשר לא פתוח.
पुल खुला नहीं है।
होटल में पार्किंग नहीं है।
橋は開いていません。
ホテルに朝食は含まれない。
다리는 열려 있지 않습니다.
호텔은 조식을 제공하지 않습니다.
桥没有开放。
酒店不提供早餐。
酒店没有停车场。
สะพานไม่เปิด
โรงแรมไม่มีที่จอดรถ
Khách sạn không có bãi đỗ xe.
Cầu không mở.
Hotel itu tidak menyediakan sarapan.
Hotellet erbjuder inte frukost.
De brug is niet open.
Het hotel heeft geen parkeerplaats.
Ele não foi condenado.
O rei não tem filhos.
O lago não existe mais.
Ela não fala inglês.
A loja não fecha.
Não foi a Ana, foi o Carlos.
O jogo não foi em Lisboa.
Ele não pode viajar.
O veneno não deixa vestígios.
El rey no tiene hijos.
El rey no tuvo hijos
Ella no habla inglés.
El lago no existe.
No queda pan.
La puerta no da al jardín.
No hay peaje.
El hotel no incluye desayuno.
No deja huellas.
Il re non ha figli.
Il re non aveva figli
Non fa freddo.
Il prezzo non include la colazione.
Le roi n'a pas d'enfants.
Il ne parle pas anglais.
Le prix n'inclut pas le petit-déjeuner.
Der König hat keine Kinder.
Der Preis enthält kein Frühstück.
Das Getränk enthält keinen Alkohol.
Er spricht kein Englisch.
Król nie ma dzieci.
Nie mówi po angielsku.
Король не имеет детей.
У короля нет детей.
Он не говорит по-английски.
Напиток не содержит алкоголя.
Kralın çocuğu yok.
Otel kahvaltı içermiyor.
De koning heeft geen kinderen.
De prijs bevat geen ontbijt.
Priset inkluderar inte frukost.
The drink contains no alcohol.
The drink does not contain alcohol.
The price does not include breakfast.
The soup contains no meat.
The king has no children.
He doesn't say grace.
She does not mention Anna.
Vua không có con.
Khách sạn không bao gồm bữa sáng.
Đồ uống không có cồn.
国王没有孩子。
不含酒精
飲料不含酒精
価格に朝食は含まれません。
アルコールは含まれていません。
この飲み物にアルコールは含まれていない。
王には子供がいません。
술은 포함되어 있지 않습니다.
왕은 자녀가 없습니다.
아침 식사는 포함되지 않습니다.
ไม่มีบุตร
ราคาไม่รวมอาหารเช้า
राजा के कोई संतान नहीं थी।
नाश्ता शामिल नहीं है।
ليس للملك أطفال.
المشروب لا يحتوي على الكحول.
השתייה אינה מכילה אלכוהול.
למלך אין ילדים.
He is missing.
I have to decline the invitation with regrets.
Breakfast is not included.
The building is not listed.
No information was leaked.
Неизвестный солдат
未知数
不详之兆
知らない人
""".strip().splitlines()


@pytest.mark.parametrize("response", [*ABSTAIN, *OF_A_SOURCE])
def test_a_response_that_says_nothing_else_abstains(response: str) -> None:
    assert is_abstention(response)


@pytest.mark.parametrize("response", [*ANSWER, *OF_A_THING])
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
        ('{"city": "Paris", "since": "unknown"}', '{"city": "Paris", "since": "unknown"}'),
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
        (r"\frac{3}{4}", "3/4"),
        (r"It is $-5^\circ\text{C}$.", "It is -5°C ."),
        (r"$1{,}250$", "1,250"),
        (r"$12\%$", "12%"),
        (r"$H_2O$", "H2O"),
        (r"\mathrm{H_2O}", "H2O"),
        ("It costs $5 and $6, or $x_y.", "It costs $5 and $6, or $x_y."),
        (r"C:\times\frac.txt", r"C:\times\frac.txt"),
        ("$HOME/a_b and $PATH", "$HOME/a_b and $PATH"),
        ("${A_B}$", "${A_B}$"),
    ],
)
def test_boxed_answers_are_unboxed(text: str, plain: str) -> None:
    assert " ".join(unboxed(text).split()) == plain


def test_a_reply_in_latin_letters_without_a_hint_of_a_denial_is_read_no_further() -> None:
    # `DENIAL_HINTS` and `HINTS` are shortcuts: whatever the words of a language deny holds one.
    for response in [*ABSTAIN, *OF_A_SOURCE]:
        plain = _plain(unboxed(answer_text(response)))
        for language in map(_language, LATIN):
            if language.denies.search(plain) or language.of_source.search(plain):
                assert DENIAL_HINTS.search(plain)
                assert language.hints.search(plain), (language.name, response)
