"""The check of a text that words an agreed answer: it says the answer, and nothing else.

A model that is asked to put "30 days" into a sentence may write "1 day", "not 30 days", or add a link. So its text is
shown only if the answer stands in it once, as it was agreed on, and every other word is one of the question's or a
function word. A word that could turn the meaning (a negation, a number, a name, "only", "before") is neither, unless
the question has it.
"""

from __future__ import annotations

import re

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.languages import NEGATIONS, WORDS, language_of

_LONGEST = 600  # characters of a text
_SIGN = re.compile(r"[<>=%€$£~^|{}\[\]\\/@#&+]")
_ENDS = " \t\n.,;:!?*_\"'`“”„«»()"


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
    allowed = {*WORDS.get(f"function words {language_of(question)}", ()), *asked}
    return allowed.issuperset(plain_words(f"{before} {after}").split())


def _denies(question: str, words: list[str]) -> bool:
    """True if a question holds a negation, which a sentence may drop: "Which days are not paid?"."""
    return not NEGATIONS.isdisjoint(words) or re.search(r"n['’]t\b", question) is not None
