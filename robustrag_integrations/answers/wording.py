"""The check of a text that words an agreed answer: it says the answer, and nothing else.

A model that is asked to put "30 days" into a sentence may write "1 day", "not 30 days", or add a link. So its text is
shown only if the answer stands in it once, as it was agreed on, and every other word is one of the question's or a
function word. A word that could turn the meaning (a negation, a number, a name, "only", "before") is neither, unless
the question has it.
"""

from __future__ import annotations

import re
from functools import cache

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.languages import NEGATIONS, language_of

_LONGEST = 600  # characters of a text
_SIGN = re.compile(r"[<>=%€$£~^|{}\[\]\\/@#&+]")
_ENDS = " \t\n.,;:!?*_\"'`“”„«»()"
_WORDS = {  # function words that turn no meaning
    "en": "a an the this that it its he she they there is are was were be been has have had do does did of in on at to "
    "for by with as you your we our their his her",
    "de": "ein eine einen einem einer eines der die das den dem des es er sie dies diese dieser dieses ist sind war "
    "waren wird werden wurde wurden hat haben hatte gibt von in im an am auf zu zum zur für mit bei als du dein ihr "
    "ihre sein seine wir unser unsere",
    "fr": "un une le la les l d de du des ce cet cette ces il elle ils elles est sont était étaient a ont avait y à au "
    "aux en dans sur pour par avec comme vous votre vos nous notre nos son sa ses leur leurs c qu que s",
    "es": "un una el la los las lo de del es son era eran fue fueron ha han hay tiene tienen a al en para por con como "
    "se su sus este esta esto ese esa que usted nuestro nuestra",
    "it": "un uno una il lo la i gli le l d di del della dello dei degli delle è sono era erano fu ha hanno c ci a al "
    "alla in nel nella su sul per da dal con come si questo questa che",
    "pt": "um uma o a os as de do da dos das é são era eram foi há tem têm em no na nos nas ao à para por pelo pela "
    "com como se seu sua este esta isto que",
    "nl": "een de het dit dat deze er is zijn was waren wordt worden werd heeft hebben had van in op aan te voor met "
    "bij als je jouw u uw we ons onze hun",
}


@cache
def _function_words(language: str) -> frozenset[str]:
    return frozenset(_WORDS.get(language, "").split())


def says_only(text: str, agreed: str, question: str) -> bool:
    """True if a text says an agreed answer and nothing else.

    Args:
        text: what a model wrote.
        agreed: the answer, as a source writes it.
        question: the question, whose words may be repeated. In a language without a list of function words nothing
            but those may.
    """
    core = agreed.strip().rstrip(".,;")
    asked = plain_words(question).split()
    if not core or len(text) > _LONGEST + len(agreed) or links_in(text) or _denies(question, asked):
        return False
    begins = rf"(?<!\w){re.escape(core)}|\A[{re.escape(_ENDS)}]*{re.escape(core[:1].upper() + core[1:])}"
    found = [match.span() for match in re.finditer(rf"(?:{begins})(?!\w)", text)]
    if len(found) != 1:
        return False
    [(start, end)] = found
    before, after = text[:start], text[end:]
    if before[-1:] not in _ENDS or after[:1] not in _ENDS or _SIGN.search(before + after):  # "-30", "30/month"
        return False
    allowed = _function_words(language_of(question) or "").union(asked)
    return allowed.issuperset(plain_words(f"{before} {after}").split())


def _denies(question: str, words: list[str]) -> bool:
    """True if a question holds a negation, which a sentence may drop: "Which days are not paid?"."""
    return not NEGATIONS.isdisjoint(words) or re.search(r"n['’]t\b", question) is not None
