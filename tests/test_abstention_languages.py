"""Abstentions and answers with a negation, told apart in many languages."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations.abstention import _language, _plain, is_abstention
from robustrag_integrations.abstention_words import HINTS, OTHER_SCRIPTS

# Per language replies that abstain, a line of dashes, and answers.
REPLIES = {
    "Bengali": """
আমি জানি না।
পাঠ্যে এটি উল্লেখ নেই।
প্রদত্ত পাঠ্যে এই তথ্য নেই।
দুঃখিত, আমি এই প্রশ্নের উত্তর দিতে পারছি না।
অজানা।
কোনো উত্তর পাওয়া যায়নি।
প্রদত্ত তথ্যের ভিত্তিতে উত্তর দেওয়া সম্ভব নয়।
যথেষ্ট তথ্য নেই।
আমি এই প্রশ্নের উত্তর জানি না।
বিজয়ীর নাম উল্লেখ করা হয়নি।
দুঃখিত, কিন্তু আমি জানি না।
লেখক এটি উল্লেখ করেননি।
তথ্য অপর্যাপ্ত।
প্রদত্ত পাঠ্যের ভিত্তিতে, এই প্রশ্নের উত্তর দেওয়া যায় না।
---
সেতুটি খোলা নয়।
হোটেলে পার্কিং নেই।
তিনি বাংলা বলেন না।
অনুমতি নেই।
পানিতে সীসা নেই।
কার্ল গ্রস জিতেছেন, যদিও তারিখ উল্লেখ নেই।
ঢাকা
কেউ আহত হয়নি।
গুপ্তধন পাওয়া যায়নি।
তিনি ইংরেজি জানেন না।
অজানা চিত্রকর
১৯৭১ সালে
""",
    "Tamil": """
எனக்குத் தெரியாது.
எனக்கு தெரியவில்லை.
உரையில் இது குறிப்பிடப்படவில்லை.
யார் வென்றார் என்று உரையில் கூறப்படவில்லை.
தகவல் இல்லை.
இந்த தகவல் கிடைக்கவில்லை.
மன்னிக்கவும், இந்தக் கேள்விக்கு பதில் அளிக்க முடியவில்லை.
ஆவணத்தில் இதைப் பற்றி எதுவும் சொல்லப்படவில்லை.
பதில் இல்லை.
போதுமான தகவல் இல்லை.
கொடுக்கப்பட்ட உரையில் அந்த தகவல் இல்லை.
அறியப்படவில்லை.
என்னால் பதிலளிக்க முடியாது.
உறுதியாக தெரியவில்லை.
இந்தக் கேள்விக்கான பதில் உரையில் இல்லை.
பத்தியில் ஆண்டு குறிப்பிடப்படவில்லை.
---
பாலம் திறக்கப்படவில்லை.
விடுதியில் வாகன நிறுத்தம் இல்லை.
கடை ஞாயிற்றுக்கிழமை திறக்காது.
ரயில் வரவில்லை.
அவர் தமிழ் பேசுவதில்லை.
பாலத்தில் கட்டணம் இல்லை.
யாரும் காயமடையவில்லை.
புதையல் கண்டுபிடிக்கப்படவில்லை.
அருங்காட்சியகத்தில் உணவகம் இல்லை.
அறியப்படாத ஓவியர்
1971
""",
    "Telugu": """
నాకు తెలియదు.
పాఠ్యంలో ఇది పేర్కొనబడలేదు.
ఎవరు గెలిచారో వచనంలో చెప్పలేదు.
సమాచారం లేదు.
ఈ సమాచారం అందుబాటులో లేదు.
క్షమించండి, ఈ ప్రశ్నకు సమాధానం ఇవ్వలేను.
పత్రంలో దీని గురించి ఏమీ చెప్పలేదు.
సమాధానం దొరకలేదు.
తగినంత సమాచారం లేదు.
తెలియదు
ఇచ్చిన సమాచారం ఆధారంగా చెప్పలేము.
పాఠంలో తేదీ ఇవ్వబడలేదు.
ఈ ప్రశ్నకు సమాధానం నాకు తెలియదు.
విజేత పేరు పేర్కొనలేదు.
ఇచ్చిన పాఠ్యం ప్రకారం, సమాచారం లేదు.
క్షమించండి, నాకు తెలియదు.
---
వంతెన తెరవలేదు.
హోటల్‌లో పార్కింగ్ లేదు.
దుకాణం ఆదివారం తెరవదు.
రైలు రాలేదు.
హైదరాబాద్
ఎవరూ గాయపడలేదు.
ఇక్కడ ఈత కొట్టకూడదు.
అతనికి ఆంగ్లం తెలియదు.
ఆమె ఉత్తరానికి జవాబు రాయలేదు.
1971
""",
    "Marathi": """
मला माहीत नाही.
मला माहिती नाही.
मजकुरात याचा उल्लेख नाही.
कोण जिंकले हे मजकुरात सांगितलेले नाही.
माहिती उपलब्ध नाही.
क्षमस्व, मी या प्रश्नाचे उत्तर देऊ शकत नाही.
दस्तऐवजात याबद्दल काहीही म्हटलेले नाही.
उत्तर सापडले नाही.
पुरेशी माहिती नाही.
अज्ञात
मला खात्री नाही.
परिच्छेदात तारीख दिलेली नाही.
सांगता येत नाही.
मला हे माहित नाही.
विजेत्याचे नाव दिलेले नाही.
दिलेल्या मजकुराच्या आधारे, उत्तर देता येत नाही.
---
पूल उघडा नाही.
हॉटेलमध्ये पार्किंग नाही.
दुकान रविवारी उघडत नाही.
गाडी आली नाही.
मुंबई
कोणीही जखमी झाले नाही.
इथे पोहता येत नाही.
त्याला इंग्रजी येत नाही.
तिने पत्राला उत्तर लिहिले नाही.
पुणे
""",
    "Gujarati": """
મને ખબર નથી.
મને ખ્યાલ નથી.
લખાણમાં આનો ઉલ્લેખ નથી.
કોણ જીત્યું તે લખાણમાં જણાવ્યું નથી.
માહિતી ઉપલબ્ધ નથી.
માફ કરશો, હું આ પ્રશ્નનો જવાબ આપી શકતો નથી.
દસ્તાવેજમાં આ વિશે કંઈ કહેવાયું નથી.
જવાબ મળ્યો નથી.
પૂરતી માહિતી નથી.
અજ્ઞાત
મને ખાતરી નથી.
ફકરામાં તારીખ આપવામાં આવી નથી.
હું જાણતો નથી.
મને આ વિશે ખબર નથી.
વિજેતાનું નામ આપેલું નથી.
આપેલ લખાણના આધારે, જવાબ આપી શકાતો નથી.
---
પુલ ખુલ્લો નથી.
હોટેલમાં પાર્કિંગ નથી.
દુકાન રવિવારે ખુલતી નથી.
ટ્રેન આવી નથી.
અમદાવાદ
કોઈ ઘાયલ થયું નથી.
અહીં તરવાની મનાઈ છે.
તેને અંગ્રેજી આવડતું નથી.
તેણીએ પત્ર લખ્યો નથી.
""",
    "Urdu": """
مجھے معلوم نہیں۔
مجھے نہیں پتا۔
مجھے نہیں معلوم کہ کون جیتا۔
متن میں اس کا ذکر نہیں ہے۔
متن میں یہ نہیں بتایا گیا کہ کون جیتا۔
معلومات دستیاب نہیں ہیں۔
معذرت، میں اس سوال کا جواب نہیں دے سکتا۔
دستاویز میں اس بارے میں کچھ نہیں کہا گیا۔
کوئی جواب نہیں ملا۔
کافی معلومات نہیں ہیں۔
نامعلوم
مجھے یقین نہیں ہے۔
فراہم کردہ متن میں تاریخ نہیں دی گئی۔
میں نہیں جانتا۔
مجھے اس کا علم نہیں۔
فاتح کا نام نہیں بتایا گیا۔
---
پل کھلا نہیں ہے۔
ہوٹل میں پارکنگ نہیں ہے۔
دکان اتوار کو نہیں کھلتی۔
ٹرین نہیں آئی۔
لاہور
کوئی زخمی نہیں ہوا۔
یہاں تیرنا منع ہے۔
اسے انگریزی نہیں آتی۔
اس نے خط نہیں لکھا۔
کراچی
""",
    "Persian": """
نمی‌دانم.
نمی دانم چه کسی برنده شد.
متن نمی‌گوید چه کسی برنده شد.
متأسفم، نمی‌توانم به این سؤال پاسخ دهم.
پاسخی یافت نشد.
نامشخص
تاریخ در متن ذکر نشده است.
متن حاوی این اطلاعات نیست.
من پاسخ این سؤال را نمی‌دانم.
بر اساس متن، نمی‌توان به این پرسش پاسخ داد.
در متن اطلاعاتی در این مورد وجود ندارد.
متن به این سؤال پاسخ نمی‌دهد.
ذکر نشده
هیچ اطلاعی ندارم.
---
پل باز نیست.
هتل پارکینگ ندارد.
مغازه یکشنبه‌ها باز نمی‌شود.
قطار نیامد.
تهران
هیچ‌کس نمرد.
او هرگز دستگیر نشد.
موزه کافه ندارد.
گنج پیدا نشد.
مغازه بسته نیست.
نقاش ناشناس
""",
    "Swahili": """
Sijui.
Mimi sijui.
Sijui nani alishinda.
Maandishi hayasemi nani alishinda.
Haijatajwa katika maandishi.
Hakuna taarifa.
Hakuna habari kuhusu hilo.
Samahani, siwezi kujibu swali hili.
Hati haitoi jibu.
Jibu halipo katika maandishi.
Haijulikani.
Sina uhakika.
Hakuna maelezo ya kutosha.
Tarehe haijatajwa.
Maandishi hayajataja jina la mshindi.
Jina la mshindi halijatajwa.
---
Daraja halijafunguliwa.
Hoteli haina maegesho.
Duka halifunguliwi Jumapili.
Treni haikufika.
Nairobi
Hakuna aliyejeruhiwa.
Kuogelea hakuruhusiwi.
Hazina haikupatikana.
Duka halijafungwa.
Kitabu hakikuchapishwa.
""",
    "Indonesian and Malay": """
Saya tidak tahu.
Teks tidak menyebutkan siapa yang menang.
Tidak disebutkan dalam teks.
Dokumen tidak menjelaskan hal itu.
Informasi tidak tersedia.
Saya tidak yakin.
Berdasarkan teks yang diberikan, tidak ada informasi tentang hal itu.
Teks tersebut tidak mengandung informasi mengenai hal itu.
Maklumat tidak dinyatakan.
Tiada maklumat.
Nama pemenangnya tidak disebutkan.
Maaf, saya tidak tahu.
Tidak jelas.
Tidak ada keterangan mengenai tanggalnya.
Saya tidak dapat mencari jawapan.
Konteks tidak cukup untuk menjawab.
---
Jembatan itu tidak dibuka.
Hotel tidak memiliki tempat parkir.
Toko tidak buka hari Minggu.
Kereta tidak datang.
Jakarta
Tiada yuran dikenakan.
Tidak ada yang terluka.
Dilarang berenang.
Harta karun tidak ditemukan.
Toko tidak tutup.
Tidak ada korban selamat.
""",
    "Tagalog": """
Hindi ko alam.
Hindi nabanggit sa teksto.
Hindi sinasabi sa teksto kung sino ang nanalo.
Walang impormasyon.
Walang nabanggit tungkol dito.
Paumanhin, hindi ko masagot ang tanong na ito.
Hindi ito nakasaad sa dokumento.
Walang sagot.
Hindi sapat ang impormasyon.
Hindi alam.
Hindi ako sigurado.
Hindi tinukoy ang petsa sa teksto.
Hindi malinaw.
Hindi nabanggit ang pangalan ng nanalo.
Batay sa teksto, hindi masasagot ang tanong.
Pasensya na, hindi ko alam.
---
Hindi bukas ang tulay.
Walang paradahan ang hotel.
Hindi nagbubukas ang tindahan tuwing Linggo.
Hindi dumating ang tren.
Maynila
Walang nasugatan.
Bawal lumangoy.
Hindi natagpuan ang kayamanan.
Hindi sarado ang tindahan.
Cebu
""",
    "Greek": """
Δεν ξέρω.
Το κείμενο δεν αναφέρει ποιος κέρδισε.
Δεν υπάρχουν πληροφορίες.
Δεν προκύπτει από το κείμενο.
Το έγγραφο δεν περιέχει αυτή την πληροφορία.
Με βάση το κείμενο, δεν υπάρχει απάντηση.
Δεν έχω ιδέα.
Δεν διευκρινίζεται.
Με βάση το παρεχόμενο κείμενο, δεν μπορώ να απαντήσω.
Δεν υπάρχει σχετική πληροφορία.
Δεν είναι σαφές.
Η απάντηση δεν υπάρχει στο κείμενο.
Δεν διαθέτω αυτή την πληροφορία.
---
Η γέφυρα δεν είναι ανοιχτή.
Το ξενοδοχείο δεν έχει πάρκινγκ.
Το κατάστημα δεν ανοίγει την Κυριακή.
Το τρένο δεν ήρθε.
Αθήνα
Το ποτό δεν περιέχει αλκοόλ.
Δεν συνελήφθη ποτέ.
Το μουσείο δεν έχει καφετέρια.
Δεν απάντησε στο γράμμα.
Άγνωστος ζωγράφος
Δεν υπάρχουν επιζώντες.
""",
    "Hungarian": """
Nem tudom.
A szöveg nem mondja meg, ki nyert.
Nem szerepel a szövegben.
Nincs információ.
Sajnálom, nem tudok válaszolni erre a kérdésre.
A dokumentum nem tartalmazza ezt az információt.
Nem derül ki a szövegből.
Ismeretlen.
Nem vagyok biztos benne.
A válasz nem található.
Nincs elegendő információ.
Fogalmam sincs.
A dátum nincs megadva.
A megadott szöveg alapján nem lehet megválaszolni.
Nem említik.
A győztes neve nem szerepel.
---
A híd nincs nyitva.
A szállodának nincs parkolója.
A bolt vasárnap nem nyit ki.
A vonat nem jött meg.
Budapest
Nem Anna, hanem Béla.
Soha nem fogták el.
A múzeumban nincs kávézó.
Nem válaszolt a levélre.
Ismeretlen festő
Nincsenek túlélők.
""",
    "Finnish": """
En tiedä.
Teksti ei kerro, kuka voitti.
Sitä ei mainita tekstissä.
Ei tietoa.
Valitettavasti en voi vastata tähän kysymykseen.
Asiakirja ei sisällä tätä tietoa.
Se ei käy ilmi tekstistä.
Tuntematon.
En ole varma.
Vastausta ei löydy.
Tietoa ei ole tarpeeksi.
Ei hajuakaan.
Päivämäärää ei ole annettu.
Annetun tekstin perusteella ei voida vastata.
Ei tiedetä.
Voittajan nimeä ei mainita.
---
Silta ei ole auki.
Hotellissa ei ole pysäköintiä.
Kauppa ei avaudu sunnuntaina.
Juna ei tullut.
Helsinki
Hän ei voinut matkustaa.
Häntä ei koskaan pidätetty.
Museossa ei ole kahvilaa.
Hän ei vastannut kirjeeseen.
Tuntematon sotilas
Eloonjääneitä ei ole.
""",
    "Czech": """
Nevím.
V textu to není uvedeno.
Bohužel na tuto otázku nemohu odpovědět.
Z textu to nevyplývá.
Nejsem si jistý.
Není dostatek informací.
Datum není uvedeno.
Text se o tom nezmiňuje.
Informace chybí.
Na základě poskytnutého textu nemohu odpovědět.
V textu o tom není žádná zmínka.
Úryvek neuvádí datum.
Neuvedeno.
Nevím, kdo vyhrál.
---
Most není otevřen.
Hotel nemá parkoviště.
Obchod v neděli neotevírá.
Vlak nepřijel.
Praha
Neznámý vojín
Nikdo nebyl zraněn.
Koupání je zakázáno.
Poklad nebyl nalezen.
Obchod není zavřený.
Neumí plavat.
Nelze tam parkovat.
""",
    "Romanian": """
Nu știu.
Nu este menționat în text.
Îmi pare rău, nu pot răspunde la această întrebare.
Nu reiese din text.
Nu sunt sigur.
Nu sunt suficiente informații.
Data nu este specificată.
Nu se menționează.
Numele câștigătorului nu este menționat.
Scuze, nu știu.
Nu este clar.
Nu am găsit răspunsul.
Textul nu oferă această informație.
---
Podul nu este deschis.
Hotelul nu are parcare.
Magazinul nu se deschide duminica.
Trenul nu a venit.
București
El nu a putut călători.
Nu a fost prins niciodată.
Muzeul nu are cafenea.
Nu a răspuns la scrisoare.
Pictor necunoscut
Nu există supraviețuitori.
""",
    "Danish": """
Det ved jeg ikke.
Det er ikke nævnt i teksten.
Beklager, jeg kan ikke besvare dette spørgsmål.
Det fremgår ikke af teksten.
Jeg er ikke sikker.
Der er ikke nok oplysninger.
Datoen er ikke angivet.
Teksten nævner det ikke.
Det står der ikke noget om.
Ud fra teksten kan jeg ikke svare.
Der er ingen oplysninger om det i teksten.
Passagen angiver ikke datoen.
Ikke angivet.
Det vides ikke.
---
Broen er ikke åben.
Hotellet har ingen parkering.
Butikken åbner ikke om søndagen.
Toget kom ikke.
København
Han kunne ikke rejse.
Han blev aldrig fanget.
Museet har ingen café.
Han svarede ikke på brevet.
Ukendt maler
Der er ingen overlevende.
""",
    "Norwegian": """
Jeg vet ikke.
Teksten sier ikke hvem som vant.
Det er ikke nevnt i teksten.
Ingen informasjon.
Beklager, jeg kan ikke svare på dette spørsmålet.
Dokumentet inneholder ikke denne informasjonen.
Det fremgår ikke av teksten.
Ukjent.
Jeg er ikke sikker.
Svaret ble ikke funnet.
Det er ikke nok informasjon.
Aner ikke.
Datoen er ikke oppgitt.
Teksten nevner det ikke.
Teksten gir ingen informasjon om det.
Vinnerens navn nevnes ikke.
---
Broen er ikke åpen.
Hotellet har ikke parkering.
Butikken åpner ikke på søndag.
Toget kom ikke.
Oslo
Ingen ble skadet.
Bading forbudt.
Skatten ble ikke funnet.
Butikken er ikke stengt.
Han kan ikke svømme.
""",
    "Swedish": """
Texten nämner inte det.
Det finns ingen information om det.
Tyvärr kan jag inte svara på den frågan.
Texten säger inte vem som grundade staden.
Okänt.
Ingen aning.
Det står inte i texten.
Det finns inte tillräckligt med information.
Vinnarens namn nämns inte.
Förlåt, jag vet inte.
Det är oklart.
Jag hittar inte svaret.
Det framgår inte.
---
Bron är inte öppen.
Ingen skadades.
Hundar är inte tillåtna.
Museet har ingen parkering.
Man får inte bada.
Han greps aldrig av polisen.
Museet har inget kafé.
Han besvarade inte brevet.
Okänd målare
""",
    "Dutch": """
De tekst vermeldt het niet.
Op basis van de gegeven tekst kan ik deze vraag niet beantwoorden.
De passage zegt niet wie de stad heeft gesticht.
Het document geeft die informatie niet.
Niet bekend.
Ik kan het antwoord niet vinden.
---
De brug is niet open.
De winkel is op zondag niet open.
Niemand raakte gewond.
Er zijn geen overlevenden.
Honden zijn niet toegestaan.
Hij werd nooit gepakt.
Het museum heeft geen parkeerplaats.
Hij beantwoordde de brief niet.
Zwemmen mag niet.
""",
    "Bulgarian": """
Не знам.
Текстът не казва кой е спечелил.
Не се споменава в текста.
Няма информация.
Съжалявам, не мога да отговоря на този въпрос.
Документът не съдържа тази информация.
Не става ясно от текста.
Неизвестно.
Не съм сигурен.
Отговорът не е намерен.
Няма достатъчно информация.
Нямам представа.
Датата не е посочена.
Въз основа на текста не може да се отговори.
В текста не е посочено.
Името на победителя не е споменато.
---
Мостът не е отворен.
Хотелът няма паркинг.
Магазинът не отваря в неделя.
Влакът не дойде.
София
Никой не беше ранен.
Плуването е забранено.
Съкровището не беше намерено.
Магазинът не е затворен.
Той не може да плува.
""",
    "Croatian and Serbian": """
Ne znam.
To se ne spominje u tekstu.
Žao mi je, ne mogu odgovoriti na ovo pitanje.
Iz teksta nije jasno.
Nisam siguran.
Nema dovoljno informacija.
Datum nije naveden.
U tekstu nije navedeno.
Текст не каже ко је победио.
Није наведено у тексту.
Није познато.
Na temelju teksta ne mogu odgovoriti.
U tekstu nema informacija o tome.
Odlomak ne navodi datum.
Nije navedeno.
Ne piše u tekstu.
---
Most nije otvoren.
Hotel nema parkiralište.
Trgovina ne radi nedjeljom.
Vlak nije došao.
Zagreb
Мост није отворен.
Не.
Nikad nije uhvaćen.
Muzej nema kafić.
Nije odgovorio na pismo.
Nepoznati slikar
Nema preživjelih.
""",
    "Catalan": """
No ho sé.
El text no diu qui va guanyar.
No s'esmenta al text.
No hi ha informació.
Ho sento, no puc respondre aquesta pregunta.
El document no conté aquesta informació.
No es menciona.
Desconegut.
No n'estic segur.
No s'ha trobat la resposta.
No hi ha prou informació.
Ni idea.
La data no s'indica.
El text no ho especifica.
No se sap.
El nom del guanyador no s'esmenta.
---
El pont no és obert.
L'hotel no té aparcament.
La botiga no obre els diumenges.
El tren no ha arribat.
Barcelona
Ningú no va resultar ferit.
Prohibit nedar.
El tresor no es va trobar.
La botiga no està tancada.
No sap nedar.
""",
    "Ukrainian": """
У тексті це не вказано.
Я не знаю.
Про це немає інформації.
На основі наданого тексту неможливо відповісти.
Вибачте, я не можу відповісти на це питання.
Не вказано.
У тексті не сказано, хто заснував місто.
Дата не вказана.
Невідомо.
Документ не містить цієї інформації.
Гадки не маю.
Текст не повідомляє, хто переміг.
Про це не йдеться.
Відповіді в тексті немає.
У тексті про це не згадується.
Не впевнений.
---
Міст не відкрито.
Ніхто не постраждав.
Собак не допускають.
У музеї немає парковки.
Тут не можна купатися.
Ніхто не загинув.
Купатися заборонено.
Скарб не знайшли.
Магазин не зачинено.
Він не вміє плавати.
""",
    "Russian": """
В тексте это не указано.
Извините, я не могу ответить на этот вопрос.
Информация отсутствует.
Имя победителя не упоминается.
Не ясно.
Текст не предоставляет этой информации.
---
Мост не открыт.
Выживших нет.
У музея нет парковки.
Никто не погиб.
В музее нет кафе.
Магазин не закрыт.
Он не может плавать.
""",
    "Polish": """
Tekst tego nie podaje.
Brak informacji na ten temat w tekście.
Przykro mi, nie mogę odpowiedzieć na to pytanie.
Fragment nie mówi, kto założył miasto.
Informacja niedostępna.
Nie mam pojęcia.
---
Most nie jest otwarty.
Sklep nie jest czynny w niedziele.
Nikt nie został ranny.
Nie ma ocalałych.
Psy nie są dozwolone.
Nigdy nie został schwytany.
Muzeum nie ma parkingu.
Nie odpowiedział na list.
Nie wolno pływać.
""",
    "French": """
Le texte ne le précise pas.
Aucune information n'est donnée à ce sujet.
Je suis désolé, mais je ne peux pas répondre à cette question.
Cela n'est pas mentionné dans le passage.
Impossible à dire.
L'information n'est pas disponible.
---
Le pont n'est pas ouvert.
Le magasin n'ouvre pas le dimanche.
Personne n'a été blessé.
Il n'y a pas de péage.
Les chiens ne sont pas admis.
Il n'a jamais été capturé.
Le musée n'a pas de parking.
Aucun survivant.
Elle n'a pas répondu.
""",
    "Turkish": """
Metinde belirtilmiyor.
Üzgünüm, bu soruya cevap veremiyorum.
Bilinmiyor.
Cevap bulunamadı.
Metne dayanarak cevap veremem.
Parça tarihi belirtmiyor.
---
Köprü kapalı değil.
Kurtulan olmadı.
Müzenin otoparkı yok.
Tren gelmedi.
Yüzmek yasak.
Mektuba yanıt vermedi.
Yüzme bilmiyor.
""",
    "Hindi": """
पाठ में यह नहीं बताया गया है।
क्षमा करें, मैं इस प्रश्न का उत्तर नहीं दे सकता।
अज्ञात
पता नहीं
पाठ में इसके बारे में जानकारी नहीं है।
पाठ इस प्रश्न का उत्तर नहीं देता।
---
पुल खुला नहीं है।
कोई जीवित नहीं बचा।
संग्रहालय में पार्किंग नहीं है।
पानी में सीसा नहीं है।
उसे कभी नहीं पकड़ा गया।
खज़ाना नहीं मिला।
अज्ञात चित्रकार
""",
    "Vietnamese": """
Văn bản không đề cập đến điều đó.
Không có thông tin về điều đó.
Xin lỗi, tôi không thể trả lời câu hỏi này.
Đoạn văn không nói ai thành lập thành phố.
Không rõ.
Tôi không chắc.
Chưa rõ.
---
Cây cầu không mở.
Cửa hàng không mở vào Chủ nhật.
Không ai bị thương.
Không có người sống sót.
Không được mang chó vào.
Ông ấy chưa bao giờ bị bắt.
Bảo tàng không có bãi đỗ xe.
Anh ấy không trả lời thư.
Không được bơi.
""",
    "Arabic": """
النص لا يذكر ذلك.
لا توجد معلومات حول ذلك.
عذرا، لا أستطيع الإجابة على هذا السؤال.
لا يقول المقطع من أسس المدينة.
غير معروف.
ليس لدي فكرة.
---
الجسر غير مفتوح.
المتجر لا يفتح يوم الأحد.
لم يصب أحد.
لا يوجد ناجون.
غير مسموح بالكلاب.
لم يتم القبض عليه أبدا.
المتحف ليس لديه موقف سيارات.
لم يرد على الرسالة.
السباحة ممنوعة.
""",
    "Korean": """
본문에 나와 있지 않습니다.
이에 대한 정보가 없습니다.
죄송합니다. 이 질문에 답할 수 없습니다.
지문은 누가 도시를 세웠는지 말하지 않습니다.
알 수 없음
---
다리는 열려 있지 않습니다.
가게는 일요일에 열지 않습니다.
아무도 다치지 않았습니다.
생존자는 없습니다.
개는 허용되지 않습니다.
그는 잡히지 않았다.
박물관에는 주차장이 없습니다.
그는 편지에 답하지 않았다.
수영은 금지되어 있습니다.
""",
    "Thai": """
ข้อความไม่ได้ระบุไว้
ไม่มีข้อมูลเกี่ยวกับเรื่องนี้
ขออภัย ฉันไม่สามารถตอบคำถามนี้ได้
ข้อความไม่ได้บอกว่าใครก่อตั้งเมือง
ไม่ทราบ
ไม่แน่ใจ
---
สะพานไม่เปิด
ร้านไม่เปิดวันอาทิตย์
ไม่มีใครได้รับบาดเจ็บ
ไม่มีผู้รอดชีวิต
ไม่อนุญาตให้นำสุนัขเข้า
เขาไม่เคยถูกจับ
พิพิธภัณฑ์ไม่มีที่จอดรถ
เขาไม่ได้ตอบจดหมาย
ห้ามว่ายน้ำ
""",
}
CASES = {name: [part.strip().splitlines() for part in rows.split("---")] for name, rows in REPLIES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_reply_that_only_denies_to_know_abstains_in_many_languages(name: str) -> None:
    assert [reply for reply in CASES[name][0] if not is_abstention(reply)] == []


@pytest.mark.parametrize("name", CASES)
def test_an_answer_with_a_negation_answers_in_many_languages(name: str) -> None:
    assert [reply for reply in CASES[name][1] if is_abstention(reply)] == []


def test_a_clause_that_denies_holds_a_hint_of_its_language() -> None:
    # Without a hint a language's other words are not looked for.
    for denials, _ in CASES.values():
        for reply in map(_plain, denials):
            for language in map(_language, HINTS):
                if language.denies.search(reply) or language.of_source.search(reply):
                    assert language.hints.search(reply), (language.name, reply)


@pytest.mark.parametrize(
    "language", sorted({name for names in OTHER_SCRIPTS.values() for name in names} - {"ja", "zh"})
)
def test_hostile_replies_in_any_script_take_little_time(language: str) -> None:
    words = [word for word in _language(language).words.denies.replace("|", " ").split() if word.isalpha()][:8]
    start = time.perf_counter()
    for word in words:
        is_abstention(f"{word} " * (1900 // (len(word) + 1)))
    assert time.perf_counter() - start < 1.0
