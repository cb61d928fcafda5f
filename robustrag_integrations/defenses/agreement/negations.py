"""Whether one text says a sentence and another one its negation: "The bridge is open" and "The bridge is not open".

Negations are words of their own in most languages. In some they are a part of the verb (Turkish "açılmadı", Swahili
"halijafunguliwa", Czech "neotevírá"), which is taken for a negation only where the other text has the verb without.
Where nothing stands between words, a sentence is compared as a whole, less its negation.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.languages import NEGATIONS, language_of
from robustrag_integrations.normalise import compatible, plain_words

LONGEST_REPLY = 20_000  # characters that are looked through
_MOST_WORDS = 12  # of an answer that a clause may say in other words
_MOST_WORDS_OF_CLAUSE = 60  # in which other forms of a word are looked for
_SHARE = 0.6  # of its words
_CLAUSE = re.compile(r"[.,;:!?()\n、。，；：！？।۔]|\s(?:but|sondern|mais|sino|mas|но)\s")
_SENTENCE = re.compile(r"[.,;:!?\n。，；：！？]")

WORDS = NEGATIONS | frozenset(
    listed(
        compatible(
            "ei eivät emme není nejsou nemá nemám nincs nincsenek nincsen δεν μην όχι tidak bukan belum tak tiada ikke inga inget "
            "ingenting intet ne nije nisu nisam nema nemaju neće није нису нисам нема неће няма нямат немає yok hindi wala walang "
            "haina hakuna hayana hawana sio chẳng אין אינם אינן איני איננו אינני ليست لن ليسوا نیست نیستند نمی نشد نشده نبود ندارد "
            "نداشت نہیں नाही नाहीत न નથી નહીં না নেই নয় নাই இல்லை அல்ல లేదు కాదు లేరు keines"
        )
    )
)
"""Words that deny a sentence, in any language."""

_OTHERWISE = {  # not in these languages: "in the", "of it", "what", May
    "no": frozenset({"pt"}),
    "ne": frozenset({"it", "tr"}),
    "mai": frozenset({"fr", "de", "ro"}),
}
_TAGALOG = frozenset(listed("ang ng sa mga ay si ito siya niya kundi"))
_MALAY = frozenset(listed("itu ini yang di dan ada adalah telah akan dengan dia saya tetapi"))
_WITH = {  # words of which one must stand in the text, too: Hindi is a language, Inga a name, "tak" Polish for yes
    **dict.fromkeys(("hindi", "wala", "walang"), _TAGALOG), "tak": _MALAY,
    "inga": frozenset(listed("är och det har finns några i på av")),
}  # fmt: skip
_AUXILIARIES = frozenset(listed("do does did don doesn didn"))
NO_DENIAL = frozenset(
    listed("only just merely simply until least doubt question nur bis seulement que solo sólo soltanto")
)
_FORMS = re.compile(
    compatible(
        r"n't\b|\bn'(?=\w)|\bnu (?:este|e|a|au|sunt|s-a)\b|(?:있|하|되)?(?:지|치) ?(?:않|못)\w*|(?<!\w)(?:아니|아닙|아닌|없)\w*"
        r"|(?:েনি|য়নি|েননি)(?!\w)|(?:வில்லை|\S{3}ாது)(?![\w\u0b80-\u0bff])|లేదు(?![\w\u0c00-\u0c7f])"
    )
)
# Verbs with their negation, and what the same verb is like without it.
_TURKISH = re.compile(
    r"(?P<stem>\w{3,30}?)m(?:[ae](?:d[ıi](?:[mnk]|n[ıi]z|l[ae]r)?|m[ıi][şs](?:t[ıi]\w{0,3}|l[ae]r)?|y[ae]c[ae][kğg]\w{0,4}|z(?:l[ae]r)?)|[ıiuü]yor\w{0,5})\Z"
)
_LONGEST_TURKISH_ENDING = 7
_PREFIXED = re.compile(r"(?:ne|ن)(?P<stem>\w{3,30})\Z")
_SWAHILI_SUBJECT = "(?:li|i|wa|ya|zi|ki|vi|u|tu|ku|pa|a|m|ni)"
_SWAHILI = re.compile(rf"ha{_SWAHILI_SUBJECT}?(?:ja|ku|ta)?(?P<stem>\w{{3,30}}?)[aiue]?\Z")
_SWAHILI_POSITIVE = re.compile(rf"{_SWAHILI_SUBJECT}(?:li|na|ta|me)(?P<stem>\w{{3,30}}?)[aiue]?\Z")
_MAY_BE_NEGATED = re.compile(r"m[ae]d[ıi]|m[ae]m[ıi][şs]|m[ae]y[ae]c|m[ae]z|m[ıiuü]yor|^ha|^ne\w{3}|^ن").search
_MAY_BE_WITHIN = re.compile(r"m[ae]d[iı]|m[ae]m[iı][sş]|m[ae]y[ae]c|m[ae]z|m[ıiuü]yor|\bha[a-z]{5}|\bne\w{3}|yor ")
# Of ASCII: what holds none of them and no word of a denial denies nothing.
_PARTS = re.compile("n'|nu ")
_RUNS = re.compile("[a-z']+").findall
_SHORT = 80  # characters of a text of which is kept whether it may deny

_THAI = re.compile("[\u0e00-\u0e7f]")
_KANA = re.compile("[\u3041-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff]")
_NO_THAI = re.compile("ไม่(?:ได้)?")
_NO_CHINESE = re.compile(
    "没有|沒有|(?<!差)不(?![锈鏽丹同少仅僅但过過久断斷管])|[没沒](?!收)|并?未(?![来來知])|并非|並非"
)
_CHINESE_PARTICLES = re.compile("[了的过過着著]")
_NO_JAPANESE = re.compile(r"ません|(?<![少危汚])な(?:い|かった)(?:です)?\Z")
_JAPANESE_PARTICLES = re.compile("[はがをも]")
_JAPANESE_ENDINGS = re.compile(
    r"(?:てい?(?:ません(?:でした)?|な(?:い|かった)|ました|ます|[るた])"
    r"|(?:では|で|じゃ)?(?:ありません(?:でした)?|な(?:い|かった)|あります|ありました|あ(?:る|った)|です|でした|だ)(?:です)?"
    r"|ません(?:でした)?|ます|ました"
    r"|[らわかがさたなばま]?な(?:い|かった)(?:です)?|[っいし]た|んだ|[たるうくすつぬぶむぐ])\Z"
)
_SHORTEST_UNSPACED = 3  # characters of a sentence within another one


def contradicts(reply: str, answer: str) -> bool:
    """Whether a reply says a sentence with a negation where the answer has none, or without the answer's.

    "The bridge is not open" against "The bridge is open"; not if a clause of the reply says it as the answer does.
    Names and numbers alone are no sentence.
    """
    if not answer or not (_may_deny(reply) or _may_deny(answer)):
        return False
    reply, answer = reply[:LONGEST_REPLY].replace("’", "'"), answer[:LONGEST_REPLY].replace("’", "'")
    if _THAI.search(answer) or _HAN.search(answer) or _KANA.search(answer):
        return _contradicts_unspaced(reply, answer)
    statement = max(_CLAUSE.split(answer), key=len)
    words = _content(statement)
    if not 2 <= len(words) <= _MOST_WORDS or all(map(_is_name_or_number, statement.split())):
        return False
    whole = f"{answer}\n{reply}"
    negated = _has_negation(statement, whole)
    # Without capitals nothing tells a name from a sentence: a long clause that holds it says something of it.
    longest = 2 * len(words) + 1 if statement.lower() == statement.upper() else math.inf
    opposed = [
        (negated != _has_negation(clause, whole)) != bool(turned % 2)
        for clause in _CLAUSE.split(reply)
        for content in [_content(clause)]
        for shared, turned in [_shared(words, content)]
        if shared >= _SHARE * len(words) and len(content) <= longest
    ]
    return bool(opposed) and all(opposed)


def opposed_warning(
    answer: str, replies: Iterable[str | None], keyword_sets: Iterable[Collection[str] | None]
) -> str | None:
    """What to say where several groups contradict the answer; None where fewer than two do.

    Args:
        answer: its text.
        replies: per group the text of its response.
        keyword_sets: per group its keywords; one without any does not count.
    """
    different = Counter(r for r, said in zip(replies, keyword_sets, strict=True) if said and r and r != answer)
    count = sum(groups for reply, groups in different.items() if contradicts(reply, answer))
    if count < 2:
        return None
    return f"the groups contradict each other: {count} say the answer with a negation, or without the one that it has"


def _may_deny(text: str) -> bool:
    if not text.isascii():
        return True
    return _short_may_deny(text) if len(text) <= _SHORT else _some_denies(text)


def _some_denies(text: str) -> bool:
    lowered = text[:LONGEST_REPLY].lower()
    return bool(_PARTS.search(lowered) or _MAY_BE_WITHIN.search(lowered)) or not WORDS.isdisjoint(_RUNS(lowered))


_short_may_deny = lru_cache(maxsize=1 << 10)(_some_denies)


def _content(clause: str) -> frozenset[str]:
    return frozenset(plain_words(_FORMS.sub(" ", compatible(clause).casefold())).split()) - WORDS - _AUXILIARIES


def _is_name_or_number(word: str) -> bool:
    return word[:1].isupper() or not any(map(str.isalpha, word))


def _has_negation(clause: str, text: str) -> bool:
    folded = compatible(clause).casefold()
    words = frozenset(plain_words(folded).split())
    if not words.isdisjoint(NO_DENIAL):
        return False
    return any(deny(word, words, text) for word in words & WORDS) or bool(_FORMS.search(folded))


def deny(word: str, beside: Collection[str], text: str) -> bool:
    """Whether a word of `WORDS` denies, beside these words and in the language of this text."""
    if word in _WITH:
        return not _WITH[word].isdisjoint(beside)
    return word not in _OTHERWISE or language_of(text) not in _OTHERWISE[word]


def _shared(words: frozenset[str], clause: frozenset[str]) -> tuple[int, int]:
    """How many of these words a clause has, in whatever form; and how many of them with the opposite negation."""
    left, other = words - clause, clause - words
    found, turned = len(words) - len(left), 0
    if not (found and left and other) or len(clause) > _MOST_WORDS_OF_CLAUSE:
        return found, turned
    turned += sum(any(_negates(word, each) for each in other) for word in filter(_MAY_BE_NEGATED, left))
    turned += sum(any(_negates(word, each) for each in left) for word in filter(_MAY_BE_NEGATED, other))
    found += turned
    if found < _SHARE * len(words):
        found += sum(any(_are_forms(word, each) for each in other if each[0] == word[0]) for word in left)
    return found, turned


def _negates(word: str, plain: str) -> bool:
    """Whether a word is another one with a negation in it."""
    if (match := _TURKISH.match(word)) and not _TURKISH.match(plain):
        longest = len(match["stem"]) + _LONGEST_TURKISH_ENDING
        return plain.startswith(match["stem"]) and len(match["stem"]) < len(plain) <= longest
    if (match := _PREFIXED.match(word)) and match["stem"].removeprefix("ی") == plain.replace("آ", "ا"):
        return True
    match, positive = _SWAHILI.match(word), _SWAHILI_POSITIVE.match(plain)
    return match is not None and positive is not None and match["stem"] == positive["stem"]


def _are_forms(one: str, other: str) -> bool:
    """Whether two words are likely forms of one: they begin alike."""
    alike = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if one[0] < "\u0900":
        return alike >= 4 and 2 * alike >= max(len(one), len(other))
    if one[0] >= "\uac00":
        return alike >= 2
    return alike >= 3


def _contradicts_unspaced(reply: str, answer: str) -> bool:
    """The same where nothing stands between words: half of a sentence of the reply is the answer but for the negation."""
    reply, answer = compatible(reply), compatible(answer)
    negated, said = _unspaced(answer.strip(" .。"))
    sentences = [_unspaced(sentence.strip()) for sentence in _SENTENCE.split(reply) if sentence.strip()]
    alike = [was != negated for was, forms in sentences if _is_within(said, forms)]
    return bool(alike) and all(alike)


def _is_within(said: Collection[str], forms: Collection[str]) -> bool:
    return any(
        one and (one == other or (len(other) <= 2 * len(one) >= 2 * _SHORTEST_UNSPACED and one in other))
        for one in said
        for other in forms
    )


def _unspaced(sentence: str) -> tuple[bool, tuple[str, ...]]:
    """Whether a sentence denies, and how it may read without its negation."""
    if _THAI.search(sentence):
        return _NO_THAI.search(sentence) is not None, (_NO_THAI.sub("", sentence),)
    bare = "".join(filter(str.isalnum, sentence))
    if _KANA.search(bare):
        return _NO_JAPANESE.search(bare) is not None, (_JAPANESE_ENDINGS.sub("", _JAPANESE_PARTICLES.sub("", bare)),)
    negated = _NO_CHINESE.search(bare) is not None
    plain = _CHINESE_PARTICLES.sub("", bare)
    has = _NO_CHINESE.sub("", re.sub("[没沒]有", "有", plain))
    return negated, tuple(dict.fromkeys((has, _NO_CHINESE.sub("", plain))))
