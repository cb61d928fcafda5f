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
from functools import lru_cache
from typing import Literal

from robustrag_integrations.defenses.agreement.denials import denies, names_longer
from robustrag_integrations.defenses.agreement.negations import contradicts
from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.keywords.closed_classes import FUNCTION_WORDS, NAME_LINKS
from robustrag_integrations.keywords.han import simplified
from robustrag_integrations.lazily import kept_property
from robustrag_integrations.normalise import plain_words, signed_words
from robustrag_integrations.prompts import Task

_SHORT_ANSWER = 4  # words
_LONGEST_QUANTITY = 4  # words
_SHORTEST_BASE = 3  # characters
_LONGEST_BASE = 40
_MOST_KEYWORDS = 200  # of the answer: an answer of hundreds of words is judged by those that most groups say
_PARTS = re.compile(r"[,;:()\[\]\n、，；：。]")
_INITIALS = re.compile(r"(?<!\S)[^\W\d_](?: [^\W\d_])+(?!\S)")
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
    replies: Sequence[str | None] = (),
) -> list[Support | None]:
    """Where each group stands; None for one that abstained or failed.

    What an answer says are its key phrases: those of its agreed keywords that are names or numbers (capitalised within
    it, or with a digit), else all of them; of phrases within phrases the longest. A group supports the answer if it
    says all of them, or some of them and nothing of its own. In a long answer (`long_form`), which no group says
    in full, one is enough. A group that denies a key phrase says a part of the answer at most.

    Args:
        answer: the answer's text.
        in_answer: the keywords of that text, none for an abstention.
        keyword_sets: per group the keywords of its response.
        tally: what was counted and retained.
        task: `short_answer` or `long_form`.
        replies: per group the text of its response, which shows what is a name and what is denied.
    """
    agreed = frozenset(in_answer) & frozenset(tally.retained)
    shown = agreed
    if len(agreed) > _MOST_KEYWORDS:
        shown = frozenset(sorted(agreed, key=lambda w: (-tally.counts.get(w, 0), -len(w), w))[:_MOST_KEYWORDS])
    keys = _key_phrases(answer, shown - {plain for w in shown if (plain := simplified(w)) != w})
    view = _Answer(answer, shown, keys, _words(plain_words(answer), *in_answer), task == "long_form")
    texts = [reply or "" for reply in replies] or [""] * len(keyword_sets)
    given = [None if said is None else (said, text) for said, text in zip(keyword_sets, texts, strict=True)]
    agreeing = {each: view.agreement(*each, tally) for each in dict.fromkeys(given) if each is not None}
    missed = _agreed_among([each[0] for each in given if each is not None and agreeing[each] is None], tally)
    standing = {
        (said, text): found or view.disagreement(said, text, missed - agreed, tally)
        for (said, text), found in agreeing.items()
    }
    return [None if each is None else standing[each] for each in given]


def _agreed_among(keyword_sets: Sequence[frozenset[str]], tally: KeywordTally) -> frozenset[str]:
    """The retained keywords that these groups alone would have kept."""
    counts = Counter(keyword for said in keyword_sets for keyword in said)
    needed = max(1, math.ceil(tally.mu))
    return frozenset(w for w in tally.retained if counts[w] >= needed)


@dataclass(frozen=True)
class _Answer:
    """The answer, its agreed keywords, the key phrases among them, and all words of its text."""

    text: str
    shown: frozenset[str]
    keys: frozenset[str]
    words: frozenset[str]
    one_is_enough: bool

    def agreement(self, said: frozenset[str], reply: str, tally: KeywordTally) -> Support | None:
        """How a group agrees with the answer; None if it does not."""
        found = self._in_keywords(said, reply, tally)
        if found is None or not self._is_otherwise(said, reply, found.words, tally):
            return found
        return Support("partial")

    def _is_otherwise(self, said: frozenset[str], reply: str, words: tuple[str, ...], tally: KeywordTally) -> bool:
        """Whether a reply or the answer alone denies what they share, or the reply names or counts something else."""
        if reply != self.text and any(denies(reply, word) != denies(self.text, word) for word in words):
            return True
        if reply != self.text and contradicts(reply, self.text):
            return True
        if any(self._counts_otherwise(word, said, tally) for word in words if has_digit(word)):
            return True
        names = [word for word in words if word in self.keys and word.isalpha()]
        known = self.words | _words(*tally.retained) if names else frozenset[str]()
        return any(names_longer(reply, name, known) for name in names)

    def _counts_otherwise(self, number: str, said: frozenset[str], tally: KeywordTally) -> bool:
        """Whether a number belongs to something in the answer, and to something else in a reply: room 12, floor 12."""
        here = {w for w in self.shown if w != number and _runs_in(number, w) and len(w.split()) == 2}
        there = {w for w in said.difference(tally.retained) if w != number and _runs_in(number, w)}
        return bool(here and there) and not here & said

    def _in_keywords(self, said: frozenset[str], reply: str, tally: KeywordTally) -> Support | None:
        """The same, by keywords alone."""
        stated = self.keys & said
        if stated != self.keys:
            phrases = " ".join(w for w in said if " " in w)
            every = f" {_without_points(phrases)} "  # what is not in it need not be looked for
            stated |= frozenset(
                key
                for key in self.keys - stated
                if simplified(key) in said
                or (f" {_undotted(key)} " in every and _within_a_phrase(key, said))
                or _by_initials(key, reply)
            )
        if stated and (self.one_is_enough or stated == self.keys):
            return Support("supports", tuple(sorted(stated)))
        own, shared = self._own(said, reply), said & self.shown
        parts = frozenset(w for w in shared if any(_runs_in(w, key) for key in self.keys))
        words = tuple(sorted(stated or _longest(parts)))
        if parts and own <= frozenset(tally.retained):
            return Support("supports", words)
        if stated or (shared and not own) or len(_words(*parts)) > 1:
            return Support("partial", words)
        return None

    def disagreement(self, said: frozenset[str], reply: str, missed: frozenset[str], tally: KeywordTally) -> Support:
        """Where a group stands that says something else; `missed` is what such groups agree on."""
        if said & missed:
            return Support("left_out")
        retained = frozenset(tally.retained)
        lost = self._own(said, reply) - retained or said - retained
        return Support("outvoted", (), float(_votes_missing(lost, tally)))

    def _own(self, said: frozenset[str], reply: str) -> frozenset[str]:
        """The group's keywords with a word that the answer does not hold, or with words of several of its names."""
        content, capitalised = _single_words(said), capitalised_words(reply)
        return frozenset(w for w in said if self._is_own(w, content, capitalised))

    def _is_own(self, keyword: str, content: frozenset[str], capitalised: frozenset[str]) -> bool:
        words = keyword.split()
        lacking = [word for word in words if not self._holds(word)]
        if not lacking:
            return len(words) > 1 and self._mixes(keyword)
        if not _is_sentence(keyword, content):
            return True
        telling = any(len(word.strip(".")) == 1 or word not in FUNCTION_WORDS for word in lacking)
        return telling and _is_specific(keyword, capitalised)  # World War I, 10 miles

    def _mixes(self, keyword: str) -> bool:
        """Whether it joins parts of key phrases and says none: "Jane Lee" of Jane Smith and Bob Lee."""
        if any(_runs_in(key, keyword) or _runs_in(keyword, key) for key in self.keys):
            return False
        homes = [frozenset(key for key in self.keys if _runs_in(word, key)) for word in keyword.split()]
        named = [home for home in homes if home]
        return len(named) > 1 and not frozenset.intersection(*named)

    def _holds(self, word: str) -> bool:
        """Whether the answer holds a word, or one that it is the base form of ("time" of "times")."""
        return word in self.words or word in self._bases

    @kept_property
    def _bases(self) -> frozenset[str]:
        """What the answer's words begin with, numbers aside."""
        words = [word for word in self.words if not has_digit(word)]
        return frozenset(word[:size] for word in words for size in range(_SHORTEST_BASE, min(len(word), _LONGEST_BASE)))


def _key_phrases(answer: str, shown: frozenset[str]) -> frozenset[str]:
    """The longest names and numbers among the answer's agreed keywords; if there are none, the longest of all.

    A keyword that joins what the answer sets apart, with a comma, a bracket or a line break, is none.
    """
    capitalised = capitalised_words(answer)
    text = f" {plain_words(answer)} "
    parts = "\n".join(f" {plain_words(part)} " for part in _PARTS.split(answer))
    within = frozenset(w for w in shown if f" {w} " not in text or f" {w} " in parts) or shown
    specific = frozenset(w for w in within if _is_specific(w, capitalised))
    return _longest(specific or _without_sentences(within, shown))


def _is_specific(keyword: str, capitalised: frozenset[str]) -> bool:
    """Whether a keyword is a name or a number: small words may stand within it, and not at its ends."""
    words = keyword.split()
    if has_digit(words[0]) and len(words) <= _LONGEST_QUANTITY:
        return True
    if not (_is_strong(words[0], capitalised) and _is_strong(words[-1], capitalised)):
        return False
    return all(word in NAME_LINKS or _is_strong(word, capitalised) for word in words[1:-1])


def _is_strong(word: str, capitalised: frozenset[str]) -> bool:
    return word.rstrip(".") in capitalised or has_digit(word)


def has_digit(word: str) -> bool:
    """Whether it is a number, or holds one."""
    return any(map(str.isdigit, word))


def capitalised_words(answer: str) -> frozenset[str]:
    """The words that the answer writes with a capital, as keywords have them.

    The first word of a sentence has one anyway: it counts in short answers, and where the next word has one too.
    """
    written = answer.split()
    flags = [word.lstrip(_OPENING)[:1].isupper() for word in written]
    if len(written) > _SHORT_ANSWER and not flags[1]:
        flags[0] = False
    return _words(*(plain_words(word) for word, flag in zip(written, flags, strict=True) if flag))


def _without_sentences(keywords: frozenset[str], shown: frozenset[str]) -> frozenset[str]:
    content = _single_words(shown)
    return frozenset(w for w in keywords if not _is_sentence(w, content)) or keywords


def _single_words(keywords: Collection[str]) -> frozenset[str]:
    return frozenset(w for w in keywords if len(w.split()) == 1)


def _is_sentence(keyword: str, content: frozenset[str]) -> bool:
    """Whether it is a whole short reply, kept as one keyword: it holds words that alone are no keyword."""
    words = keyword.split()
    return len(words) > 1 and bool(content.intersection(words)) and not content.issuperset(words)


def _longest(keywords: Collection[str]) -> frozenset[str]:
    """Those that do not run within another one."""
    return frozenset(w for w in keywords if not any(w != other and _runs_in(w, other) for other in keywords))


def _runs_in(keyword: str, phrase: str) -> bool:
    if f" {keyword} " in f" {phrase} ":
        return True
    one, other = _undotted(keyword), _undotted(phrase)
    return (one != keyword or other != phrase) and f" {one} " in f" {other} "


def _without_points(text: str) -> str:
    """Keywords without the points of initials: both "george w" and "bush" run in "george w. bush"."""
    return " ".join(word.rstrip(".") or word for word in text.split())


_undotted = lru_cache(maxsize=1 << 14)(_without_points)  # for one keyword: those of whole replies would fill the memory


def _within_a_phrase(key: str, said: frozenset[str]) -> bool:
    """Whether a group says a key phrase with more words around it, each of them a keyword: not "not" and the like."""
    around = [w.split() for w in said if w != key and _runs_in(key, w)]
    own = frozenset(key.split())
    return any(all(word in said or word in own for word in words) for words in around)


def _by_initials(key: str, reply: str) -> bool:
    """Whether a reply says a name with initials, however either writes them: J. K., J.K., JK."""
    wanted, plain = _with_initials_joined(key)
    if wanted == plain == key and not _INITIALS.search(_with_initials_joined(reply)[1]):
        return False
    return f" {wanted} " in f" {_with_initials_joined(reply)[0]} "


@lru_cache(maxsize=32)
def _with_initials_joined(text: str) -> tuple[str, str]:
    """The words of a text with their signs, its initials as one word; and as they are."""
    plain = signed_words(text)
    return _INITIALS.sub(lambda found: found[0].replace(" ", ""), plain), plain


def _words(*phrases: str) -> frozenset[str]:
    return frozenset(word for phrase in phrases for word in phrase.split())


def _votes_missing(keywords: Collection[str], tally: KeywordTally) -> int:
    """How many more groups it would have taken for the best of these keywords to be retained."""
    best = max((tally.counts.get(w, 0) for w in keywords), default=0)
    return max(math.ceil(tally.mu) - best, 0)
