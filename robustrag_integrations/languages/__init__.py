"""Identification of a reply's language, and each language's small words.

Scripts decide where they can; languages that share a script are told apart by their small words, and a reply without
any counts as in no known language. Stop words lie in `stop_words`, a file for each language.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path


def listed(words: str) -> list[str]:
    """Return the words of a space-separated list."""
    return words.split()


_STOP_WORDS = Path(__file__).with_name("stop_words")
_RANGES = (
    ("greek", 0x370, 0x3FF), ("cyrillic", 0x400, 0x52F), ("hebrew", 0x590, 0x5FF), ("arabic", 0x600, 0x77F),
    ("devanagari", 0x900, 0x963), ("bengali", 0x980, 0x9FF), ("gujarati", 0xA80, 0xAFF), ("tamil", 0xB80, 0xBFF),
    ("telugu", 0xC00, 0xC7F), ("thai", 0xE00, 0xE7F), ("hangul", 0x1100, 0x11FF), ("kana", 0x3041, 0x30FA),
    ("han", 0x3400, 0x9FFF), ("hangul", 0xAC00, 0xD7A3),
)  # fmt: skip
_OF_SCRIPT = {
    "hebrew": "he", "arabic": "ar", "devanagari": "hi", "thai": "th", "kana": "ja", "han": "zh", "hangul": "ko",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
# Words that are frequent in one of these languages and rare in the others.
_PROFILES = {
    "en": "can i you my how where when why do does did should the of and to is was in it for with that by from are were an at its be which has had this on as not what who no yes never they he she but there his her their per",
    "de": "welche welcher welches welchen wann wie der die das und ist ein eine einem einen einer im am zum zur von mit den dem des war wurde nicht auf für sich als nach bei aus wird hat es sie er vom ins laut heißt dort noch so wo uhr",
    "fr": "quelles quels quelle quel le la les des du un une est et dans en au aux à il elle que qui sur pour par avec pas ne été était son sa ses ce cette cette c'est d'un d'une selon fut à",
    "es": "cuáles cuál cuándo dónde cómo el la los las de del y en un una es que por con se su para al fue era no según más lo sus como está son desde",
    "it": "quali quale il lo la gli le di del della dei delle un una è e in che per con si non al alla nel nella fu sono come da dal dalla ha secondo ad era stato anche",
    "pt": "quais o a os as de do da dos das em no na um uma é e que por com se não ao foi para segundo mais são pelo pela era está num ele ela você",
    "pl": "w we i z ze na do jest nie się to od po za dla przez był była było oraz o są że który która jego według roku tym przy",
    "tr": "bir ve bu için ile de da olarak olan göre daha çok en kadar gibi ise sonra ne olduğu tarafından yılında şu mi",
    "vi": "là của và có được trong cho với này các những người một năm theo đã ở từ tại không do về vào",
    "nl": "welke wanneer de het een en van is in op te zijn met voor dat die niet door werd was aan naar uit bij ook er",
    "sv": "vilka vilken och är en ett det som av för på med den till i har inte var från om de vid",
    "uk": "і та в у на з до є що це не як за від був була було про для",
    "ru": "и в на с из по не что это как за от был была было о для к его он она",
}  # fmt: skip
_ONE_LETTER = 0.4  # of a word: "e-mail" is no Portuguese
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _PROFILES.items():
    for _word in dict.fromkeys(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_PROFILE_OF = {  # what a word counts for each of its languages
    word: [(language, (1 if len(word) > 1 else _ONE_LETTER) / len(languages)) for language in languages]
    for word, languages in _LANGUAGES_OF.items()
}
_LETTERS = {
    "de": "äöüß", "fr": "àâçèêëîïôùûœ", "es": "ñ¿¡", "pt": "ãõ", "pl": "ąćęłńóśźż", "tr": "ğışİ", "vi": "ăđơư",
    "sv": "å",
}  # fmt: skip
_VIETNAMESE = re.compile("[\u1ea0-\u1ef9\u0103\u0111\u01a1\u01b0]")
# Said of any text or answer, in replies to questions about a text.
ABOUT_THE_TEXT = frozenset(
    listed(
        "antwort text dokument dokuments laut kontext quelle passage heißt gesuchte réponse texte document "
        "selon passage contexte respuesta texto documento según fragmento contexto dice risposta testo "
        "documento secondo brano dice resposta texto documento segundo trecho diz odpowiedź tekst tekstu "
        "dokument dokumentu według cevap yanıt belge belgeye metin metne göre theo tài liệu văn bản câu trả "
        "lời ответ тексту текст документ документе согласно النص الوثيقة بحسب وفقا الجواب الإجابة המסמך הטקסט "
        "לפי התשובה पाठ दस्तावेज़ अनुसार मुताबिक उत्तर 문서에 문서 따르면 본문에는 본문 답은 답 정답은"
    )
)
NEGATIONS = frozenset(
    listed(
        "not never cannot n't nicht kein keine keinen keinem keiner nie pas jamais aucun aucune no nunca "
        "ningún ninguna non mai nessun nessuna não nem nie nigdy не ни değil không chưa לא אינו אינה لا ليس "
        "غير لم नहीं niet geen inte ingen"
    )
)


VERDICTS = frozenset(
    listed(
        "yes no ja nein oui non sí no sì sim não tak nie да нет так ні evet hayır نعم لا כן לא हाँ हां नहीं 是 是的 不是 对 不 "
        "はい いいえ 네 예 아니요 아니오 ใช่ ไม่ใช่ có không nee nej"
    )
)


def language_of(text: str) -> str | None:
    """Return a reply's language ("en", "de", "ja", ...), None where its words do not tell.

    Args:
        text: plain lines of one reply.
    """
    if text.isascii():
        return _of_latin(text)
    if not (scripts := scripts_of(text)):
        return _of_latin(text)
    main, size = scripts.most_common(1)[0]
    if scripts["kana"] and scripts["kana"] + scripts["han"] >= size:
        main = "kana"
    if main == "cyrillic":
        return "uk" if any(letter in text for letter in "іїєґ") else "ru"
    return _OF_SCRIPT.get(main) or _of_latin(text)


def scripts_of(text: str) -> Counter[str]:
    """Count a text's characters by script; empty if most of its letters are Latin."""
    counts = Counter(script for character in text if (script := _script(ord(character))))
    latin = sum(character.isascii() and character.isalpha() for character in text)
    return counts if 3 * counts.total() >= latin else Counter()


def _script(code: int) -> str | None:
    if code < _RANGES[0][1]:
        return None
    return next((name for name, first, last in _RANGES if first <= code <= last), None)


def _of_latin(text: str) -> str | None:
    lowered = text.casefold()
    scores: defaultdict[str, float] = defaultdict(float)
    for profile in filter(None, map(_PROFILE_OF.get, _WORD.findall(lowered))):
        for language, share in profile:
            scores[language] += share
    if not text.isascii():
        for language, letters in _LETTERS.items():
            scores[language] += 0.5 * any(letter in lowered for letter in letters)
        scores["vi"] += 2 * bool(_VIETNAMESE.search(lowered))
    best = max(scores.values(), default=0.0)
    return next(language for language in _PROFILES if scores[language] == best) if best >= 0.3 else None


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the small words of a language, case-folded; without a list, only those that any text may hold."""
    file = _STOP_WORDS / f"{language}.txt"
    words = file.read_text(encoding="utf-8").splitlines() if language.isalpha() and file.is_file() else ()
    return ABOUT_THE_TEXT.union(words)
