"""A sentence and its negation do not support each other, in many languages."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations.defenses.agreement.denials import denies
from robustrag_integrations.defenses.agreement.negations import contradicts

# A sentence and its negation.
OPPOSED = """
The shop opens on Sunday.|The shop does not open on Sunday.
Anna Berg won.|Anna Berg did not win.
Der Laden öffnet heute.|Der Laden öffnet heute nicht.
De winkel opent op zondag.|De winkel opent niet op zondag.
Butiken öppnar på söndag.|Butiken öppnar inte på söndag.
Le magasin ouvre le dimanche.|Le magasin n'ouvre pas le dimanche.
पुल खुला है।|पुल खुला नहीं है।
다리는 열려 있습니다.|다리는 열려 있지 않습니다.
โรงแรมให้บริการอาหารเช้า|โรงแรมไม่ให้บริการอาหารเช้า
Otel kahvaltı sunuyor.|Otel kahvaltı sunmuyor.
Мост открыт.|Мост не открыт.
הגשר פתוח|הגשר לא פתוח
Most jest otwarty.|Most nie jest otwarty.
Jembatan dibuka.|Jembatan tidak dibuka.
Silta on auki.|Silta ei ole auki.
Podul este deschis.|Podul nu este deschis.
Köprü açıldı.|Köprü açılmadı.
Tren geldi.|Tren gelmedi.
Ahmet yarışı kazandı.|Ahmet yarışı kazanmadı.
Dükkan pazar günü açılır.|Dükkan pazar günü açılmaz.
Otelin otoparkı var.|Otelin otoparkı yok.
Köprü açık.|Köprü açık değil.
Proje tamamlanacak.|Proje tamamlanmayacak.
Kitap yayımlanmış.|Kitap yayımlanmamış.
Cây cầu mở cửa.|Cây cầu không mở cửa.
Tàu đã đến.|Tàu chưa đến.
Kauppa avautuu sunnuntaina.|Kauppa ei avaudu sunnuntaina.
Anna voitti.|Anna ei voittanut.
He lähtivät kotiin.|He eivät lähteneet kotiin.
A bolt vasárnap kinyit.|A bolt vasárnap nem nyit ki.
A híd nyitva van.|A híd nincs nyitva.
Anna nyert.|Anna nem nyert.
Toko itu buka.|Toko itu tidak buka.
Kereta sudah datang.|Kereta belum datang.
Dia guru.|Dia bukan guru.
Kedai itu dibuka.|Kedai itu tak dibuka.
Daraja limefunguliwa.|Daraja halijafunguliwa.
Hoteli ina maegesho.|Hoteli haina maegesho.
Anna alishinda.|Anna hakushinda.
Duka linafunguliwa Jumapili.|Duka halifunguliwi Jumapili.
پل باز است.|پل باز نیست.
هتل پارکینگ دارد.|هتل پارکینگ ندارد.
قطار آمد.|قطار نیامد.
مغازه باز می‌شود.|مغازه باز نمی‌شود.
کتاب منتشر شد.|کتاب منتشر نشد.
ट्रेन आई।|ट्रेन नहीं आई।
पूल उघडा आहे.|पूल उघडा नाही.
સેતુ ખુલ્લો છે.|સેતુ ખુલ્લો નથી.
পুলটি খোলা আছে।|পুলটি খোলা নেই।
দোকানটি রবিবার খোলে।|দোকানটি রবিবার খোলে না।
পুলটি খোলা।|পুলটি খোলা নয়।
பாலம் திறந்துள்ளது.|பாலம் திறக்கப்படவில்லை.
விடுதியில் உணவகம் உள்ளது.|விடுதியில் உணவகம் இல்லை.
హోటల్‌లో పార్కింగ్ ఉంది.|హోటల్‌లో పార్కింగ్ లేదు.
پل کھلا ہے۔|پل کھلا نہیں ہے۔
Η γέφυρα είναι ανοιχτή.|Η γέφυρα δεν είναι ανοιχτή.
Η Άννα κέρδισε.|Η Άννα δεν κέρδισε.
Most je otevřen.|Most není otevřen.
Obchod v neděli otevírá.|Obchod v neděli neotevírá.
Vlak přijel.|Vlak nepřijel.
Hotel má parkoviště.|Hotel nemá parkoviště.
Ana a câștigat.|Ana nu a câștigat.
Broen er åben.|Broen er ikke åben.
Toget kom.|Toget kom ikke.
Мостът е отворен.|Мостът не е отворен.
Хотелът има паркинг.|Хотелът няма паркинг.
Most je otvoren.|Most nije otvoren.
Hotel ima parkiralište.|Hotel nema parkiralište.
Мост је отворен.|Мост није отворен.
El pont és obert.|El pont no és obert.
Bukas ang tulay.|Hindi bukas ang tulay.
May paradahan ang hotel.|Walang paradahan ang hotel.
Il ponte è aperto.|Il ponte non è aperto.
A ponte está aberta.|A ponte não está aberta.
El puente está abierto.|El puente no está abierto.
Die Brücke ist offen.|Die Brücke ist nicht offen.
Das Hotel hat einen Parkplatz.|Das Hotel hat keinen Parkplatz.
Готель має парковку.|Готель не має парковки.
المتجر يفتح يوم الأحد.|المتجر لا يفتح يوم الأحد.
الجسر مفتوح.|الجسر ليس مفتوحا.
הרכבת הגיעה.|הרכבת לא הגיעה.
למלון יש חניה.|למלון אין חניה.
桥开放了。|桥没有开放。
国王有孩子。|国王没有孩子。
允许带狗。|不允许带狗。
他是木匠。|他不是木匠。
商店星期天开门。|商店星期天不开门。
橋は開いています。|橋は開いていません。
店は日曜日に開きます。|店は日曜日に開きません。
彼は捕まった。|彼は捕まらなかった。
博物館に駐車場があります。|博物館に駐車場はありません。
彼は医者です。|彼は医者ではありません。
犬は入れる。|犬は入れない。
가게는 일요일에 엽니다.|가게는 일요일에 열지 않습니다.
박물관에는 주차장이 있습니다.|박물관에는 주차장이 없습니다.
그는 의사입니다.|그는 의사가 아닙니다.
สะพานเปิด|สะพานไม่เปิด
พิพิธภัณฑ์มีที่จอดรถ|พิพิธภัณฑ์ไม่มีที่จอดรถ
The hotel has parking.|The hotel has no parking.
The bridge can be crossed.|The bridge cannot be crossed.
He was convicted.|He was never convicted.
The drug is effective.|The drug isn't effective.
Dogs are allowed.|Dogs are not allowed.
Le musée a un parking.|Le musée n'a pas de parking.
De brug is open.|De brug is niet open.
Bron är öppen.|Bron är inte öppen.
Sklep otwiera się w niedzielę.|Sklep nie otwiera się w niedzielę.
Muzeum ma parking.|Muzeum nie ma parkingu.
Поезд пришёл.|Поезд не пришёл.
""".strip().splitlines()
# Two sentences of which neither denies the other, though they hold what looks like a negation.
ALIKE = """
Most v neděli otevírá nemocnice.|Nemocnice v neděli otevírá most.
Nebe je modré.|Modré je nebe.
Dondurma satıldı.|Dondurma bugün satıldı.
Köprü 1931 yılında açıldı.|Köprü yılında açıldı, 1931.
Hati ina jina.|Jina ni hati, ina jina.
Praha je hlavní město, není malé.|Praha je hlavní město.
Haiti ina watu wengi.|Haiti ina watu wengi sana.
هتل نزدیک پل است.|هتل نزدیک پل شهر است.
نام او علی است.|نام او علی رضا است.
Nepal is in Asia.|Nepal is a country in Asia.
The media made it.|The media made it in May.
The bridge was made of steel, not iron.|The bridge was made of steel.
答案不是上海，是北京。|北京
他没有去过北京。|北京
东京不是答案，答案是北京。|北京
東京ではなく、北京です。|北京
彼は北京に行ったことがない。|北京です。
कार्ल ग्रोस ने युद्ध के बाद कोई चुनाव कभी नहीं हारा।|कार्ल ग्रोस
不丹是一个国家。|不丹是亚洲国家。
未来は明るいです。|未来は明るいです。
少ないです|少ないです
不锈钢制造|由不锈钢制造
他在无锡出生。|无锡是他出生的地方。
彼は東京で生まれました。|彼は1950年に東京で生まれました。
危ない橋です。|危ない橋です。
Ele mora no Rio de Janeiro.|Ele mora perto do Rio de Janeiro.
La casa es de Ana, no de Luis.|La casa es de Ana.
Ema Nemec won the race.|Ema Nemec won the race in 1950.
Hassan ana nyumba.|Hassan ana nyumba kubwa.
নিউ ইয়র্কে তিনি থাকেন|তিনি নিউ ইয়র্কে থাকেন
নায়িকা রানি জিতেছেন|রানি জিতেছেন
Ninety people came.|Ninety people came by bus.
Naples won.|Naples won the cup.
Nina hit the ball.|Nina hit the ball hard.
""".strip().splitlines()
# A reply, and a name that it denies.
DENIED = """
Bukan Jakarta, melainkan Bandung.|Jakarta
Nem Budapest, hanem Pécs.|Budapest
Ei Helsinki vaan Turku.|Helsinki
Ne Zagreb, nego Split.|Zagreb
Nije Zagreb.|Zagreb
Není to Praha.|Praha
Δεν είναι η Αθήνα.|Αθήνα
Όχι η Αθήνα.|Αθήνα
Ikke Oslo, men Bergen.|Oslo
ঢাকা নয়, চট্টগ্রাম।|ঢাকা
चेन्नई नहीं।|चेन्नई
சென்னை அல்ல, மதுரை.|சென்னை
హైదరాబాద్ కాదు.|హైదరాబాద్
لاہور نہیں۔|لاہور
تهران نیست.|تهران
Hindi Maynila kundi Cebu.|Maynila
Sio Nairobi, ni Mombasa.|Nairobi
Không phải Hà Nội.|Hà Nội
Ankara değil, İstanbul.|Ankara
Не София, а Пловдив.|София
ليس القاهرة.|القاهرة
ليست القاهرة بل الجيزة.|القاهرة
לא תל אביב.|תל אביב
不是北京。|北京
北京ではありません。|北京
서울이 아닙니다.|서울
ไม่ใช่กรุงเทพ|กรุงเทพ
No Barcelona sinó Girona.|Barcelona
""".strip().splitlines()
# A reply, and a name that it does not deny.
MEANT = """
Ele mora no Rio.|Rio
Jakarta, bukan Bandung.|Jakarta
Es la capital, no hay duda: Lima.|Lima
Oslo, ikke Bergen.|Oslo
Nema problema: Zagreb.|Zagreb
ঢাকা, চট্টগ্রাম নয়।|ঢাকা
Si, Roma.|Roma
Sì, Roma.|Roma
Si trova a Roma.|Roma
En Paris.|Paris
""".strip().splitlines()


@pytest.mark.parametrize("pair", OPPOSED)
def test_a_sentence_and_its_negation_contradict_each_other(pair: str) -> None:
    one, other = pair.split("|")
    assert contradicts(other, one)
    assert contradicts(one, other)
    assert not contradicts(one, one)
    assert not contradicts(other, other)


@pytest.mark.parametrize("pair", ALIKE)
def test_words_that_look_like_negations_contradict_nothing(pair: str) -> None:
    one, other = pair.split("|")
    assert not contradicts(other, one)
    assert not contradicts(one, other)


@pytest.mark.parametrize("case", DENIED)
def test_a_name_is_denied_in_the_words_of_many_languages(case: str) -> None:
    reply, name = case.split("|")
    assert denies(reply, name)


@pytest.mark.parametrize("case", MEANT)
def test_a_name_beside_one_that_is_denied_is_meant(case: str) -> None:
    reply, name = case.split("|")
    assert not denies(reply, name)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("It was Anna Berg, not Bob.", "Anna Berg"),
        ("The bridge is open, but not at night.", "The bridge is open."),
        ("Not only is the bridge open, it is free.", "The bridge is open."),
        ("The old bridge that no longer stands was built by Anna Berg", "Anna Berg"),
        ("There is no doubt that the bridge is open.", "The bridge is open."),
        ("I could not find it; the bridge is open.", "The bridge is open."),
        ("Foi no dia 5 de junho de 1931, segundo o jornal.", "5 de junho de 1931"),
        ("Le pont a été ouvert le 5 mai 1931", "Le pont a été ouvert en 1931"),
        ("", "The bridge is open."),
        ("The bridge is not open.", ""),
    ],
)
def test_other_negations_contradict_nothing(reply: str, answer: str) -> None:
    assert not contradicts(reply, answer)


@pytest.mark.parametrize(
    "text", ["ne" * 9_000, "açılma" * 3_000, "ha" * 9_000, "நா " * 6_000, "ない" * 9_000, "不" * 18_000, "newa " * 4_000]
)
def test_hostile_replies_are_compared_in_little_time(text: str) -> None:
    start = time.perf_counter()
    contradicts(text, "Köprü açıldı, ne olursa")
    contradicts(text, "橋は開いています。")
    contradicts("The bridge is not open.", text)
    assert time.perf_counter() - start < 1.0
