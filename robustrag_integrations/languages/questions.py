"""Rules that tell what a question asks for: something beyond its own words, code, or a yes or no."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import re

from robustrag_integrations.languages import listed

_LONGEST = 2000  # characters
_ASKS = (
    "who whom whose what which when where why how wer wen wem wessen was wann wo warum wie wozu woher wohin womit wodurch "
    "qui quoi quand où pourquoi comment combien quién quiénes qué cuándo dónde cómo chi cosa quando dove perché quem onde que "
    "quê kto kogo komu co kiedy gdzie dlaczego skąd ile кто кого кому кем что чего чем когда где почему сколько откуда куда "
    "зачем чей чья хто що коли де чому kim kimin nerede nereden nasıl neden niçin hangi kaç neyle neyi ai gì nào đâu sao "
    "من ما ماذا متى أين لماذا كيف كم بماذا أي أية מי מה מתי איפה היכן למה מדוע איך כמה ממה כיצד איזה איזו कौन क्या कब कहाँ कहां क्यों कैसे "
    "wie waar wanneer waarom hoe vem vad när var varför hur"
)  # fmt: skip
_STEMS = "welch quel cuánt cuál quant qual jak któr как котор скільки котр किस कितन welke vilk"
_UNSPACED = (
    "谁 誰 什么 什麼 哪 何 怎 多少 几 幾 いつ どこ だれ なぜ どの どれ どう いくつ いくら 누구 누가 무엇 무슨 언제 어디 왜 어떻게 몇 얼마 어느 어떤 "
    "ใคร อะไร เมื่อใด เมื่อไร ที่ไหน ทำไม อย่างไร เท่าใด เท่าไร กี่ ไหน"
)
_EITHER = "or oder czy или або или veya yoksa hay hoặc أم או या"
_EITHER_UNSPACED = "还是 還是 それとも 아니면 หรือ"
_QUESTION_WORD = re.compile(
    rf"(?<!\w)(?:{'|'.join(listed(_ASKS))}|(?:{'|'.join(listed(_STEMS))})\w*)(?!\w)|{'|'.join(listed(_UNSPACED))}", re.I
)
_ALTERNATIVES = re.compile(
    rf"(?<!\w)(?:{'|'.join(listed(_EITHER))})(?!\w)|{'|'.join(listed(_EITHER_UNSPACED))}|,[^?]*\s(?:o|u|ou)\s", re.I
)


def asks_for_something_else(question: str) -> bool:
    """True if a question holds a question word and offers no alternatives.

    A yes-or-no question ("Is it effective?") and one that lists its answers ("Which is larger, Rome or Oslo?") hold
    words that an answer may be made of.
    """
    asked = question[:_LONGEST]
    return _QUESTION_WORD.search(asked) is not None and _ALTERNATIVES.search(asked) is None


_LITERAL = re.compile(r"\s*['\"`]*(?:null|nil|nan)['\"`.]*\s*\Z", re.I)
_ASKS_FOR_CODE = re.compile(
    r"\b(?:literal|keyword|operator|expression|function|method|returns?|variable|default|value|syntax|code|json|yaml|sql"
    r"|python|javascript|typescript|java|ruby|lua|golang|swift|kotlin|haskell|lisp|clojure)\b",
    re.I,
)


def is_literal(reply: str, question: str) -> bool:
    """True if a reply is a literal such as null, and the question asks for code."""
    return _LITERAL.match(reply) is not None and _ASKS_FOR_CODE.search(question[:_LONGEST]) is not None


def is_yes_or_no(question: str) -> bool:
    """True if it is a question, holds no question word and offers no alternatives."""
    asked = question[:_LONGEST]
    return (
        any(mark in asked for mark in "?？؟")
        and _QUESTION_WORD.search(asked) is None
        and _ALTERNATIVES.search(asked) is None
    )


_VERB_FIRST = (
    "is are was were am do does did has have had can could may might must shall should will would "
    "ist sind war waren bin hat haben hatte hatten darf dürfen kann können könnte muss müssen soll sollen sollte wird werden "
    "gibt gilt gelten brauche braucht est sont était peut peux puis-je peut-on faut-il doit-on dois-je existe y-a-t-il a-t-on "
    "es son está están hay puede puedo se tiene tienen debo debe è sono posso può si c'è ci é são há posso pode tem têm devo "
    "is zijn was kan kunnen mag mogen moet moeten heeft hebben zal är finns kan får måste har ska czy чи هل האם क्या"
)
_BEGINS = re.compile(
    rf"\W*(?:(?:{'|'.join(dict.fromkeys(map(re.escape, listed(_VERB_FIRST))))})(?![\w'’-])|est-ce qu|y a-t-il|[\w-]+-t-(?:il|elle|on)\b"
    r"|[\w]+-(?:je|tu|il|elle|on|nous|vous|ils|elles)\b)",
    re.I,
)
_ENDS = re.compile(r"(?:吗|嗎|么|か|까|니까|나요|ไหม|หรือไม่|không|\s(?:mi|mı|mu|mü)\w{0,6})\s*[?？]|\sли\s", re.I)


def asks_yes_or_no(question: str) -> bool:
    """True if a question surely asks for yes or no: it begins, or ends, as such questions do in its language.

    One with a question word, with alternatives or without a question mark is none.
    """
    asked = question[:_LONGEST].strip()
    return is_yes_or_no(asked) and (_BEGINS.match(asked) is not None or _ENDS.search(asked) is not None)
