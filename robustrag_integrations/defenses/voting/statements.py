"""Statements of a choice in a reply of several sentences: "So the answer is B.", "Réponse : (C)", "答案是A"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from robustrag_integrations._util.normalise import plain_words, signed_words
from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.prompts import NO_INFORMATION

_LOOKED_AT = 4_000  # characters, of the end: where a reply reasons aloud, it decides there
_MOST_STATEMENTS = 20  # the last ones
_LONGEST_OPTION = 300  # characters behind a statement that are compared with the options
_ANSWER = (
    r"answer|(?:correct|right|best) (?:option|choice)|antwort|réponse|reponse|respuesta|risposta|resposta"
    r"|antwoord|odpowiedź|odpowiedz|ответ|відповідь|cevap|yanıt|svaret|svar|đáp án|jawaban(?:nya)?"
    r"|उत्तर|जवाब|الإجابة|الجواب|התשובה|תשובה|vastaus|válasz|odpověď|odpoveď|odgovor|отговор(?:ът|а)?|одговор|răspunsul?"
    r"|απάντηση|jawapan(?:nya)?|sagot|jibu|উত্তর|பதில்|விடை|సమాధానం|జవాబు|જવાબ|جواب|پاسخ"
)
_RIGHT = (
    r"(?: (?:correcte?|correcta|corretta|correta|giusta|exacta|certa|corect|yang benar|benar|الصحيحة|الصحيح|הנכונה"
    r"|صحيح))?"
)
_UNSPACED_ANSWER = r"答案|答え|正解|回答|정답|답|คำตอบ"
_COPULA = (
    r"is|would be|must be|should be|lautet|ist|est|es|è|é|és|jest|to"
    r"|är|er|là|adalah|ialah|है|هي|هو|היא|on|este|είναι|е|је|je|ay|ni"
)
_IS = rf"(?:[ ]?[*_`]{{0,3}}[ ]?[:：=][ ]?|[ ](?:{_COPULA})(?!\w)[ ]?[:：]?[ ]?|[ ]?[-–—][ ])"
_UNSPACED_IS = r"[ ]?(?:[:：=]|是|为|為|は|은|는|คือ)?[ ]?[:：]?[ ]?"
_STATES = re.compile(
    rf"(?<!\w)(?:{_ANSWER}){_RIGHT}{_IS}|(?:{_UNSPACED_ANSWER}){_UNSPACED_IS}"
    r"|(?:doğru (?:cevap|yanıt)|सही (?:उत्तर|जवाब)|درست جواب) ",
    re.I,
)
_NOT_THAT = re.compile(
    r"not (?:option )?\W?[A-Z]\W{0,2}(?:[,;] ?|but |rather |it is |it's ){1,3}(?=\W?[A-Z]\b)"
)  # "not A, it is B"
_NO_STATEMENT = frozenset(
    listed("wrong false incorrect if whether not no falsche ob wenn mauvaise si se non pas keine als wrongly")
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[ \"'“]*(?:(?:the|la|die|el|de|o|a) )?\Z", re.I)
_HEAD = r"\W{0,4}(?:(?:option|choice|letter|antwort|choix|opción|opção|opzione) )?[(\[*_`<\"'“]{0,4}"
_UNSPACED = r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
_SIGN = r"[ ]?[.,:;)\]*_`>\"”。、，(（–—-]"
_REASON = r"[ ](?:because|since|as|which|weil|car|porque|perché|is correct|है|ہے|’?dir)(?!\w)"
_LETTER = re.compile(rf"{_HEAD}([A-Z0])(?![A-Za-z0-9_'’-])(?=\W{{0,6}}\Z|{_UNSPACED}|{_SIGN}|{_REASON})")
_SEVERAL = re.compile(r"\W{0,3}[A-Z0]\W{0,3}(?:[,/&]|and|or|und|oder|et|ou|y|o)\W{0,3}[A-Z0](?![\w'’-])")
_NOT_SO = re.compile(  # a question, or a denial behind the letter
    r"[)\]*_`>\"”]{0,4}\s?(?:[?？]|[吗嗎]|で?すか|でしょうか|입니까|인가|ไหม|(?:では|じゃ|で)(?:な[いく]|ありませ)|[이가은는]?\s?(?:아니|아닙|아닌))"
)
_CLAUSE_END = re.compile(r"[.;!?。！？\n]")


def stated(reply: str, labels: Sequence[str], options: Sequence[str]) -> int | None:
    """Return the option that a reply states as its answer, by letter or by text; None for none, or several.

    "No information" comes after all options.

    Args:
        reply: the reply, in NFKC.
        labels: the letters of the options.
        options: their texts, as `signed_words` gives them.
    """
    found: set[int | None] = set()
    text = reply[-_LOOKED_AT:]
    for match in list(_STATES.finditer(text))[-_MOST_STATEMENTS:]:
        before = _WORD_BEFORE.search(text[max(0, match.start() - 40) : match.start()])
        if before and before[1].casefold() in _NO_STATEMENT:
            continue
        end = instead.end() if (instead := _NOT_THAT.match(text, match.end())) else match.end()
        behind = text[end : end + _LONGEST_OPTION]
        if _SEVERAL.match(behind):
            return None
        letter = _LETTER.match(behind)
        if letter and _NOT_SO.match(behind, letter.end()):
            continue
        if letter and letter[1] in labels:
            found.add(labels.index(letter[1]))
        else:
            found.update(_named(behind, options))
    return found.pop() if len(found) == 1 else None


def _named(behind: str, options: Sequence[str]) -> list[int | None]:
    """The option whose text comes right behind a statement; None if the same clause names another one, too."""
    words, clause = f"{signed_words(behind)} ", f" {signed_words(_CLAUSE_END.split(behind, maxsplit=1)[0])} "
    if words.startswith(f"{plain_words(NO_INFORMATION)} "):
        return [len(options)]
    first = [i for i, option in enumerate(options) if option and words.startswith(f"{option} ")]
    if not first:
        return []
    meant = max(first, key=lambda i: len(options[i]))
    others = clause.replace(f" {options[meant]} ", " ")
    return [None if any(f" {option} " in others for option in options if option) else meant]
