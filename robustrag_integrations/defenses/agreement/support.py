"""Which groups support a final answer, by its keywords: what statuses, margins and citations say.

The radius and the answer's text do not depend on any of this. Words are compared with words and never with parts of
words: 15 is not in 2015.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.keywords.closed_classes import NAME_LINKS
from robustrag_integrations.normalise import plain_words
from robustrag_integrations.prompts import Task

_SHORT_ANSWER = 4  # words
_LONGEST_QUANTITY = 4  # words
_SHORTEST_BASE = 3  # characters
_PARTS = re.compile(r"[,;:()\[\]\n、，；：。]")
_OPENING = "\"'“„«‘([{¿¡*_#"

Standing = Literal["supports", "partial", "left_out", "outvoted"]


@dataclass(frozen=True)
class Support:
    """Where one answering group stands towards the answer.

    Attributes:
        status: `supports` if it says the answer; `partial` if it says part of it, and something else or nothing more;
            `left_out` if enough groups agree with it, but the answer does not say so; else `outvoted`.
        words: the key phrases of the answer that it says, or the parts of one, sorted.
        margin: how many more groups an outvoted one would have needed.
    """

    status: Standing
    words: tuple[str, ...] = ()
    margin: float | None = None


def supports(
    answer: str,
    in_answer: Collection[str],
    keyword_sets: Sequence[frozenset[str] | None],
    tally: KeywordTally,
    task: Task = "short_answer",
) -> list[Support | None]:
    """Where each group stands; None for one that abstained or failed.

    What an answer says are its key phrases: those of its agreed keywords that are names or numbers (capitalised within
    it, or with a digit), else all of them; of phrases within phrases the longest. A group supports the answer if it
    says all of them, or some of them and nothing of its own. In a long answer (`long_form`), which no group says
    in full, one is enough.

    Args:
        answer: the answer's text.
        in_answer: the keywords of that text, none for an abstention.
        keyword_sets: per group the keywords of its response.
        tally: what was counted and retained.
        task: `short_answer` or `long_form`.
    """
    shown = frozenset(in_answer) & frozenset(tally.retained)
    keys = _key_phrases(answer, shown)
    view = _Answer(shown, keys, _words(plain_words(answer), *in_answer), task == "long_form")
    agreeing = [None if said is None else view.agreement(said, tally) for said in keyword_sets]
    others = [said for said, found in zip(keyword_sets, agreeing, strict=True) if said is not None and found is None]
    missed = _agreed_among(others, tally) - view.shown
    return [
        None if said is None else found or view.disagreement(said, missed, tally)
        for said, found in zip(keyword_sets, agreeing, strict=True)
    ]


def _agreed_among(keyword_sets: Sequence[frozenset[str]], tally: KeywordTally) -> frozenset[str]:
    """The retained keywords that these groups alone would have kept."""
    counts = Counter(keyword for said in keyword_sets for keyword in said)
    return frozenset(w for w in tally.retained if counts[w] and counts[w] >= tally.mu)


@dataclass(frozen=True)
class _Answer:
    """The answer's agreed keywords, the key phrases among them, and all words of its text."""

    shown: frozenset[str]
    keys: frozenset[str]
    words: frozenset[str]
    one_is_enough: bool

    def agreement(self, said: frozenset[str], tally: KeywordTally) -> Support | None:
        """How a group agrees with the answer; None if it does not."""
        own, shared = self._own(said), said & self.shown
        stated = frozenset(key for key in self.keys if key in said or _within_a_phrase(key, said))
        parts = frozenset(w for w in shared if any(_runs_in(w, key) for key in self.keys))
        words = tuple(sorted(stated or _longest(parts)))
        enough = bool(stated) if self.one_is_enough else bool(stated) and stated == self.keys
        if enough or (parts and own <= frozenset(tally.retained)):
            return Support("supports", words)
        if stated or (shared and not own) or len(_words(*parts)) > 1:
            return Support("partial", words)
        return None

    def disagreement(self, said: frozenset[str], missed: frozenset[str], tally: KeywordTally) -> Support:
        """Where a group stands that says something else; `missed` is what such groups agree on."""
        if said & missed:
            return Support("left_out")
        retained = frozenset(tally.retained)
        lost = self._own(said) - retained or said - retained
        return Support("outvoted", (), float(_votes_missing(lost, tally)))

    def _own(self, said: frozenset[str]) -> frozenset[str]:
        """The group's keywords with a word that the answer does not hold."""
        content = frozenset(w for w in said if len(w.split()) == 1)
        return frozenset(w for w in said if not all(map(self._holds, w.split())) and not _is_sentence(w, content))

    def _holds(self, word: str) -> bool:
        """Whether the answer holds a word, or one that it is the base form of ("time" of "times")."""
        return word in self.words or (
            len(word) >= _SHORTEST_BASE and not _has_digit(word) and any(w.startswith(word) for w in self.words)
        )


def _key_phrases(answer: str, shown: frozenset[str]) -> frozenset[str]:
    """The longest names and numbers among the answer's agreed keywords; if there are none, the longest of all."""
    content = frozenset(w for w in shown if len(w.split()) == 1)
    capitalised = _capitalised(answer)
    within = frozenset(w for w in shown if not _spans_parts(w, answer)) or shown
    specific = frozenset(w for w in within if _is_specific(w, capitalised))
    return _longest(specific or _without_sentences(within, content))


def _spans_parts(keyword: str, answer: str) -> bool:
    """Whether a keyword joins what the answer sets apart with a comma, a bracket or a line break."""
    if not _runs_in(keyword, plain_words(answer)):
        return False
    return not any(_runs_in(keyword, plain_words(part)) for part in _PARTS.split(answer))


def _is_specific(keyword: str, capitalised: frozenset[str]) -> bool:
    """Whether a keyword is a name or a number: small words may stand within it, and not at its ends."""
    words = keyword.split()
    if _has_digit(words[0]) and len(words) <= _LONGEST_QUANTITY:
        return True
    strong = [word in capitalised or _has_digit(word) for word in words]
    return strong[0] and strong[-1] and all(s or w in NAME_LINKS for s, w in zip(strong, words, strict=True))


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _capitalised(answer: str) -> frozenset[str]:
    """The words that the answer writes with a capital, as keywords have them.

    The first word of a sentence has one anyway: it counts in short answers, and where the next word has one too.
    """
    written = answer.split()
    flags = [word.lstrip(_OPENING)[:1].isupper() for word in written]
    if len(written) > _SHORT_ANSWER and not flags[1]:
        flags[0] = False
    return _words(*(plain_words(word) for word, flag in zip(written, flags, strict=True) if flag))


def _without_sentences(shown: frozenset[str], content: frozenset[str]) -> frozenset[str]:
    return frozenset(w for w in shown if not _is_sentence(w, content)) or shown


def _is_sentence(keyword: str, content: frozenset[str]) -> bool:
    """Whether it is a whole short reply, kept as one keyword: it holds words that alone are no keyword."""
    words = keyword.split()
    return len(words) > 1 and bool(content.intersection(words)) and not content.issuperset(words)


def _longest(keywords: Collection[str]) -> frozenset[str]:
    """Those that do not run within another one."""
    return frozenset(w for w in keywords if not any(w != other and _runs_in(w, other) for other in keywords))


def _runs_in(keyword: str, phrase: str) -> bool:
    return f" {keyword} " in f" {phrase} "


def _within_a_phrase(key: str, said: frozenset[str]) -> bool:
    """Whether a group says a key phrase with more words around it, each of them a keyword: not "not" and the like."""
    around = [w.split() for w in said if w != key and _runs_in(key, w)]
    own = frozenset(key.split())
    return any(all(word in said or word in own for word in words) for words in around)


def _words(*phrases: str) -> frozenset[str]:
    return frozenset(word for phrase in phrases for word in phrase.split())


def _votes_missing(keywords: Collection[str], tally: KeywordTally) -> int:
    """How many more groups it would have taken for the best of these keywords to be retained."""
    best = max((tally.counts.get(w, 0) for w in keywords), default=0)
    return max(math.ceil(tally.mu) - best, 0)
