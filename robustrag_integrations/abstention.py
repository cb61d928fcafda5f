"""Recognising that a response abstains (paper, Algorithm 1, line 6)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from robustrag_integrations.abstention_words import (
    ASKED_FOR,
    DENIAL_HINTS,
    EMPTY,
    HINTS,
    LATIN,
    OTHER_SCRIPTS,
    UNSPACED_EMPTY,
    WORDS,
    AbstentionWords,
    hints_of,
)
from robustrag_integrations.lazily import kept_property
from robustrag_integrations.normalise import compatible
from robustrag_integrations.reply_text import answer_text, unboxed, without_citations

_LOOKED_AT = 2000  # characters; an abstention is short, and a hostile response may be long
_LONGEST_CLAUSE = 300  # characters; a longer one says something
_MOST_CLAUSES = 40
_MOST_CHUNKS = 3  # of a sentence whose denial commas cut in pieces

_STRAIGHT = str.maketrans("’‘ʼ`´“”„«»「」『』*_", "'" * 5 + '"' * 9 + "  ")
_QUOTED = re.compile(r'"[^"]*"')
# "The prize went to I Don't Know": three capitalised words or more within a sentence, one of which denies.
_TITLE = re.compile(
    r"(?<=[a-z])\s[*_]{0,2}(?=(?:[A-Z][a-z'’]*\s){0,5}(?:Not|No|Don['’]t|Didn['’]t|Can['’]t|Nothing|Nobody|None|Never|Unknown)"
    r"\b)[A-Z][a-z'’]*(?:\s[A-Z][a-z'’]*){2,7}"
)
_VOWEL_SIGNS = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f]")
_BLANK = re.compile(r"[\s.…?!,;:\"'_*–—-]*\Z")  # "[]", "==" and "&&" are answers
_NOTHING = re.compile(r"(?:null|nil|nan|n/?a|k\.\s?a)\W*\Z")
_CODE_SPAN = re.compile(r"\s*`(?:null|nil|nan)`[.\s]*\Z", re.I)
_SENTENCE_END = re.compile(r"[.!?;:]+(?=\s|$)|[…。！？；：।॥؟؛۔\n()\[\]{}（）【】|]+|\s[-–—]+\s|—|^- ", re.M)
_COMMA = re.compile(r"[,،、，](?=\s|[^\d\s])")
_BROKEN_LINE = re.compile(r"(?<=[^\W_])[ \t]*\n[ \t]*(?=[a-zà-öø-ÿа-я])")
_LEAD = re.compile(r"^(?:(?:[-•]|\d{1,2}[.)])\s)+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_IN_WORD = r"[\w\u0900-\u0963\u0981-\u0df3]"  # letters, and the vowel signs of India
_SORRY = re.compile(
    r"^(?:(?:i am|i'm|we are|we're|i) )?(?:so |very |really |but )?(?:sorry|afraid|unfortunately|regrettably|apologies"
    r"|apologi[sz]e|sadly|alas"
    r"|as an? (?:\w+ )?(?:ai|language model|assistant)|hmm+|well|okay|ok|thanks"
    r"|es tut mir leid|tut mir leid|leider|entschuldigung|bedau\w+"
    r"|desole\w*|je suis desole\w*|malheureusement|navre\w*|je regrette|lo siento|lo lamento|lamentablemente"
    r"|desafortunadamente"
    r"|por desgracia|disculp\w*|me temo|mi dispiace|spiacente|purtroppo|mi spiace|desculp\w*|lamento|sinto muito"
    r"|infelizmente|przykro mi|niestety|przepraszam|uzgunum|maalesef|ne yazik ki|kusura bakma\w*|ozur dilerim|xin loi"
    r"|rat tiec|tiec la|helaas|het spijt me|tyvarr|desvarre|dessverre|beklager|maaf|mohon maaf|sayangnya|bohuzel"
    r"|omlouvam se|к сожалению|извините|простите|увы|сожалею|прошу прощения|на жаль|вибачте|перепрошую|عذر|آسف|للأسف"
    r"|معذرة|نأسف|أعتذر|أسف|מצטער|מצטערת|לצערי|סליחה|אני מצטער|צר לי|क्षमा|माफ़|माफ|खेद|दुर्भाग्य|अफ़सोस|抱歉|对不起|對不起"
    r"|很遗憾|很遺憾|不好意思|非常抱歉|很抱歉|遗憾|申し訳|すみません|残念|恐れ入|恐縮|ごめん|あいにく|죄송|미안|유감|아쉽|안타깝|ขออภัย|เสียใจ|ขอโทษ"
    r"|น่าเสียดาย|ต้องขออภัย)"
)
_SOURCE = re.compile(
    r"\b(?:texts?|passages?|documents?|contexts?|excerpts?|sources?|articles?|paragraphs?|information|material|content"
    r"|can see|can tell|snippets?|question|dokument\w*|kontext\w*|abschnitt\w*|quelle\w*|auszug\w*|frage|extrait\w*"
    r"|contexte|texte\w*|question|document\w*|texto|contexto|fragmento|pasaje|pregunta|testo|contesto|brano|estratto"
    r"|domanda|trecho|passagem|pergunta|teks\w+|kontek\w+|fragment\w*|pytani\w*|belge\w*|metin\w*|metne\w*|baglam\w*"
    r"|tai lieu|van ban|doan|ngu canh|noi dung|bai viet|cau hoi|tekst\w*|документ\w*|текст\w*|контекст\w*|отрыв\w*"
    r"|источник\w*|вопрос\w*)|نص|وثيقة|سياق|مقطع|مستند|فقرة|سؤال|معلومات|טקסט|מסמך|הקשר|קטע|מקור|שאלה|पाठ|दस्तावेज़|दस्तावेज|संदर्भ"
    r"|अंश|प्रश्न|लेख|文|资料|資料|材料|内容|內容|段|本文|記事|テキスト|文脈|質問|본문|문서|지문|글|내용|문맥|자료|텍스트|질문|ข้อความ|เอกสาร|เนื้อหา|บริบท|บทความ"
)
_DIGIT = re.compile(r"\d")
_LATIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
_SEEN_WORDS = frozenset(["far", "see", "can", "tell", "alone", "basis", "reading", "read"])


@dataclass(frozen=True)
class Abstention:
    """Whether a reply abstains, with phrases of your own beside what `is_abstention` recognises.

    Args:
        phrases: a reply of which one sentence or clause is such a phrase, and the rest says nothing, abstains. Case,
            accents and punctuation make no difference.

    Examples:
        >>> Abstention(("computer says no",))("Computer says no.")
        True
    """

    phrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.phrases, str) or not all(isinstance(p, str) and p.strip() for p in self.phrases):
            raise TypeError(f"abstention phrases must be non-empty str, got {self.phrases!r:.80}")

    def __call__(self, response: str) -> bool:
        """Whether this response abstains."""
        return _abstains(response, frozenset(_bare(phrase) for phrase in self.phrases))

    @property
    def fingerprint(self) -> str:
        """What certificates and answers name."""
        return "meaning" + (f" and {list(self.phrases)!r}" if self.phrases else "")


def is_abstention(response: str) -> bool:
    """Whether a response says that it does not know, or that what it was given does not say.

    It is read as a whole: every clause that says something of its own makes the response an answer, so that "Karl
    Gross, although I don't know his title" answers. What is empty abstains, as does a model's reasoning that never
    comes to an answer, and the JSON answer null. The words are those of `abstention_words`, in some forty languages;
    in another language a response answers. Case, accents, markup and line breaks make no difference. A phrase inside
    quotation marks is somebody's title or words, unless the whole response is that quotation. A function of this one
    response, linear in its length.
    """
    return _abstains(response, frozenset())


def _abstains(response: str, phrases: Collection[str]) -> bool:
    if _CODE_SPAN.match(response):
        return False
    text = answer_text(response)
    if len(text) > _LOOKED_AT:
        return not text.strip()
    unwrapped = without_citations(unboxed(text))
    if "\n" in unwrapped:
        unwrapped = _BROKEN_LINE.sub(" ", unwrapped)
    plain = _plain(unwrapped)
    if _BLANK.match(plain) or _NOTHING.match(plain.strip(" '\"([<")):
        return True
    if phrases and _bare(text) in phrases:
        return True
    languages = _languages(plain)
    if languages is LATIN and not phrases and not DENIAL_HINTS.search(plain):
        return False
    plain = _plain(_TITLE.sub(" xx ", unwrapped)) if _TITLE.search(unwrapped) else plain
    bare = plain.strip(" \"'.!\n-")
    plain = _QUOTED.sub(" xx ", plain) if '"' in bare else bare  # a stand-in that says something
    spoken = tuple(each for each in map(_language, languages) if each.hints.search(plain))
    denied = False
    sentences = 0
    for sentence in _SENTENCE_END.split(plain):
        if not sentence or not any(map(str.isalnum, sentence)):
            continue
        sentences += 1
        if sentences > _MOST_CLAUSES or len(sentence) > _LONGEST_CLAUSE:
            return False
        said = _said(sentence, spoken, phrases)
        if said == "content":
            return False
        denied = denied or said == "denial"
    return denied


def _plain(text: str) -> str:
    if text.isascii():
        return text.translate(_STRAIGHT).casefold()
    folded = _VOWEL_SIGNS.sub("", compatible(text).translate(_STRAIGHT)).casefold()
    return _without_accents(folded)


def _without_accents(text: str) -> str:
    out: list[str] = []
    for character in unicodedata.normalize("NFD", text.translate(_LATIN_LETTERS)):
        if unicodedata.combining(character) and out and (out[-1].isascii() or "\u0370" <= out[-1] <= "\u03ff"):
            continue
        out.append(character)
    return unicodedata.normalize("NFC", "".join(out))


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(_plain(text)))


@dataclass(frozen=True)
class _Language:
    """One language's words as patterns; each is made when it is first needed, which for most replies is never."""

    name: str
    words: AbstentionWords

    @kept_property
    def hints(self) -> re.Pattern[str]:
        """What every clause holds that denies; one that matches everything where there is no such list."""
        return hints_of((self.name,)) if self.name in HINTS else _pattern("")

    @kept_property
    def denies(self) -> re.Pattern[str]:
        """A clause that says that nothing is known or given."""
        return _pattern(self.words.denies)

    @kept_property
    def of_source(self) -> re.Pattern[str]:
        """A clause that says so if it speaks of a text, or of what was asked for."""
        return _pattern(self.words.of_source or _NEVER)

    @kept_property
    def aside(self) -> re.Pattern[str]:
        """A clause that says nothing of its own."""
        return _pattern(self.words.aside)

    @kept_property
    def asks(self) -> re.Pattern[str]:
        """The beginning of an indirect question."""
        return _pattern(f"^(?:{self.words.asks})" + ("" if self.name in _UNSPACED else f"(?!{_IN_WORD})"))

    @kept_property
    def sources(self) -> re.Pattern[str]:
        """Words for a text."""
        return _pattern(self.words.sources or _NEVER)

    @kept_property
    def asked(self) -> re.Pattern[str]:
        """Words for what was asked for."""
        return _pattern(self.words.asked or _NEVER)

    @kept_property
    def filler(self) -> re.Pattern[str]:
        """How a clause begins that apologises or offers help."""
        return _pattern(f"^(?:{self.words.filler or _NEVER})")


_NEVER = "(?!)"
_UNSPACED = frozenset({"zh", "ja", "th"})


def _pattern(words: str) -> re.Pattern[str]:
    """Of words with their letters taken apart as those of replies are."""
    return re.compile(unicodedata.normalize("NFC", words))


@cache
def _language(name: str) -> _Language:
    if name in WORDS:
        return _Language(name, WORDS[name])
    from robustrag_integrations.abstention_words_asia import WORDS as OF_ASIA

    return _Language(name, OF_ASIA[name])


@lru_cache(maxsize=64)
def _turns(languages: tuple[_Language, ...]) -> re.Pattern[str]:
    """Before what a new clause begins."""
    found = []
    for each in languages:
        spaced = each.name not in _UNSPACED and each.name != "ko"
        found.append(rf"(?<!{_IN_WORD})(?:{each.words.turns})(?:(?<= )|(?!{_IN_WORD}))" if spaced else each.words.turns)
    return _pattern("|".join(found) or _NEVER)


def _languages(text: str) -> tuple[str, ...]:
    """The languages whose words may stand in this text: by script, and Latin ones where nothing else is said."""
    if text.isascii():
        return LATIN
    counts = Counter(script for character in text if (script := _script(ord(character))))
    latin = sum(character.isascii() and character.isalpha() for character in text)
    if not counts or 3 * counts.total() < latin:
        return LATIN
    if counts.get("kana"):
        return OTHER_SCRIPTS["kana"]
    main = counts.most_common(1)[0][0]
    return OTHER_SCRIPTS[main]


_RANGES = (
    ("greek", 0x370, 0x3FF),
    ("cyrillic", 0x400, 0x52F), ("hebrew", 0x590, 0x5FF), ("arabic", 0x600, 0x77F), ("devanagari", 0x900, 0x963),
    ("bengali", 0x980, 0x9FF), ("gujarati", 0xA80, 0xAFF), ("tamil", 0xB80, 0xBFF), ("telugu", 0xC00, 0xC7F),
    ("thai", 0xE00, 0xE7F), ("hangul", 0x1100, 0x11FF), ("kana", 0x3041, 0x30FA), ("han", 0x3400, 0x9FFF),
    ("hangul", 0xAC00, 0xD7A3),
)  # fmt: skip


def _script(code: int) -> str | None:
    if code < 0x370:
        return None
    return next((name for name, first, last in _RANGES if first <= code <= last), None)


def _said(sentence: str, spoken: tuple[_Language, ...], phrases: Collection[str]) -> str:
    """What a sentence says: "content", "denial" or "nothing"."""
    sentence = _LEAD.sub("", sentence.strip())
    if phrases and _bare(sentence) in phrases:
        return "denial"
    chunks = [chunk.strip(" \"'-") for chunk in _chunks(sentence, _turns(spoken))]
    said = [_chunk_says(chunk, spoken, phrases) for chunk in chunks if any(map(str.isalnum, chunk))]
    if "denial" in said:
        return "content" if "content" in said else "denial"
    if said[:1] != ["content"] and len(said) <= _MOST_CHUNKS and _chunk_says(sentence, spoken, phrases) == "denial":
        return "denial"  # "The text, sadly, does not say"
    return "content" if "content" in said or "question" in said else "nothing"


def _chunks(sentence: str, turns: re.Pattern[str]) -> Iterator[str]:
    for piece in _COMMA.split(sentence):
        piece, done = f", {piece.strip()}", 2
        for match in turns.finditer(piece):
            yield piece[done : match.start()]
            done = match.end()
        yield piece[done:]


def _chunk_says(chunk: str, spoken: tuple[_Language, ...], phrases: Collection[str]) -> str:
    if any(each.denies.search(chunk) for each in spoken) or (phrases and _bare(chunk) in phrases):
        return "denial"
    of_source = any(each.of_source.search(chunk) for each in spoken)
    if of_source and (_is_of_a_text(chunk, spoken) or _is_of_what_was_asked(chunk, spoken)):
        return "denial"
    if _is_empty(chunk) or _SORRY.search(chunk) or any(each.filler.search(chunk) for each in spoken):
        return "nothing"
    if any(each.asks.search(chunk) for each in spoken):
        return "question"
    is_aside = any(each.aside.search(chunk) for each in spoken)
    if is_aside and _is_of_a_text(chunk, spoken) and not _DIGIT.search(chunk):
        return "nothing"
    return "content"


def _is_of_a_text(chunk: str, spoken: tuple[_Language, ...]) -> bool:
    return bool(_SOURCE.search(chunk)) or any(each.sources.search(chunk) for each in spoken)


def _is_of_what_was_asked(chunk: str, spoken: tuple[_Language, ...]) -> bool:
    return bool(ASKED_FOR.search(chunk)) or any(each.asked.search(chunk) for each in spoken)


def _is_empty(chunk: str) -> bool:
    found = _WORD.findall(chunk)
    return all(w in EMPTY or w in _SEEN_WORDS or w in UNSPACED_EMPTY for w in found)
