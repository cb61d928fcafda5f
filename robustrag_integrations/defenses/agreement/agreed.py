"""The text of an answer, made from the keys that enough groups share, and the radius within which it stays.

The *deciding* keys are those that are no part of another agreed one. Each is shown in the form that most of its sayers
write; the text is these forms in the keys' own order. Keys decide, forms are for eyes: two forms that differ in case,
spacing and the punctuation at their ends are one *folded* form, and `radius` is about folded forms, `radius_verbatim`
about letters. All of it is comparisons of two counts, which are sums over groups (`linear_forms.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from robustrag_integrations._util.normalise import compatible
from robustrag_integrations.defenses.agreement.linear_forms import Holding, Votes
from robustrag_integrations.keywords.runs import ReplyKeys, longest
from robustrag_integrations.keywords.tokens import without_punctuation


def deciding_keys(agreed: Collection[str]) -> tuple[str, ...]:
    """The agreed keys that are no part of another one, the longest first; a function of the agreed keys alone."""
    return tuple(sorted(longest(agreed), key=lambda key: (-key.count(" "), key)))


@lru_cache(maxsize=1 << 12)
def folded(form: str) -> str:
    """Return a form without case, spacing and the punctuation at its ends; equal results are the same answer."""
    plain = " ".join(compatible(form).casefold().split())
    return without_punctuation(plain).strip() or plain


@dataclass(frozen=True)
class Worded:
    """A deciding key as the answer shows it.

    Attributes:
        key: the key.
        form: the letters shown: of the folded form that most votes write, the spelling that most of these write.
        written: per group how it writes the key; None where it does not say it.
        grounds: per group whether it says the key and has its reply from its own passages.
    """

    key: str
    form: str
    written: tuple[str | None, ...]
    grounds: tuple[bool, ...] = ()

    @classmethod
    def of(cls, key: str, replies: Sequence[ReplyKeys | None], weights: Sequence[int]) -> Worded:
        """Word a key that at least one reply says."""
        written = tuple(None if reply is None else reply.forms.get(key) for reply in replies)
        votes: Counter[str] = Counter()
        for form, weight in zip(written, weights, strict=True):
            if form is not None and weight:
                votes[form] += weight
        classes = _votes_of_folds(votes)
        best = min(classes, key=lambda fold: (-classes[fold], fold), default=key)
        spelled = [form for form in votes if folded(form) == best]
        form = min(spelled, key=lambda form: (-votes[form], len(form), form), default=key)
        return cls(key, form, written, grounds_of(key, replies))

    def stays(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> Holding:
        """Tell for each number of replaced votes whether the shown folded form, or with `verbatim` its letters, stays.

        A form s stays ahead of another one t if c(s) - c(t) > 0 after the attack, or >= 0 where s comes first among
        equals; of one that nobody has written yet nothing is known.
        """
        folds = [None if form is None else folded(form) for form in self.written]
        best = folded(self.form)
        holds = stays_ahead(folds, best, lambda fold: (fold,), votes, most, pending)
        holds &= votes.leasts(np.array(self.grounds, np.int64), 0, most, pending) > 0
        if verbatim:
            spelled = [form if fold == best else None for form, fold in zip(self.written, folds, strict=True)]
            holds &= stays_ahead(spelled, self.form, lambda form: (len(form), form), votes, most, pending)
        return holds


def grounds_of(key: str, replies: Sequence[ReplyKeys | None]) -> tuple[bool, ...]:
    """Tell of each reply whether it says a key, and stands in its group's own passages."""
    return tuple(reply is not None and reply.is_grounded and key in reply.keys for reply in replies)


def stays_ahead(
    said: Sequence[str | None],
    best: str,
    rank: Callable[[str], tuple[object, ...]],
    votes: Votes,
    most: int,
    pending: int,
) -> Holding:
    """Tell for each number of replaced votes whether most groups go on saying this.

    Args:
        said: per group what it says; None for nothing.
        best: the form that most say now.
        rank: the smallest one is first among equals.
        votes: the groups' votes.
        most: the largest number.
        pending: the number of votes that are not counted yet.
    """
    others = sorted({form for form in said if form is not None and form != best}, key=rank)
    own = np.array([form == best for form in said], np.int64)
    rows = np.array([own, *(own - np.array([form == other for form in said], np.int64) for other in others)])
    first = np.array([False, *(rank(best) < rank(other) for other in others)])
    holds: Holding = (votes.leasts(rows, -1, most, pending) + first[:, None] > 0).all(axis=0)
    return holds


def _votes_of_folds(votes: Counter[str]) -> Counter[str]:
    """Count the votes of each folded form, given those of the forms."""
    found: Counter[str] = Counter()
    for form, count in votes.items():
        found[folded(form)] += count
    return found


def are_invented(words: Sequence[Worded]) -> bool:
    """True if one of these words stands in no passage of the groups that say it: there is no answer then."""
    return not all(any(worded.grounds) for worded in words)


def text_of(words: Sequence[Worded]) -> str:
    """The agreed words as the answer shows them; empty without any. A function of the keys and their forms alone."""
    shown: dict[str, str] = {}
    for worded in words:
        shown.setdefault(folded(worded.form), worded.form)
    return ", ".join(shown.values())


def forms_of(words: Sequence[Worded]) -> tuple[str, ...]:
    """Return the words as the final prompt lists them."""
    return tuple(dict.fromkeys(worded.form for worded in words))


class Unbounded(Exception):
    """Raised when corrupted groups alone can cause any text; the message says what they can do."""


ANY_FORM = "can decide how the answer is written"


def possible_forms(key: str, replies: Sequence[ReplyKeys | None], corrupted: int) -> list[str]:
    """Return the forms in which a key can be shown when corrupted groups add votes to whichever they like.

    Args:
        key: a key that an untouched group says.
        replies: the replies of the untouched groups.
        corrupted: number of corrupted groups.

    Raises:
        Unbounded: a form that no untouched group writes can be the one that is shown.
    """
    votes = Counter(reply.forms[key] for reply in replies if reply is not None and key in reply.keys)
    classes = _votes_of_folds(votes)
    largest = max(classes.values(), default=0)
    if corrupted and corrupted >= largest:
        raise Unbounded(ANY_FORM)
    forms = []
    for fold in [fold for fold, count in classes.items() if count + corrupted >= largest]:
        spelled = [form for form in votes if folded(form) == fold]
        most = max(votes[form] for form in spelled)
        if corrupted and corrupted >= most:
            raise Unbounded(ANY_FORM)
        forms += [form for form in spelled if votes[form] + corrupted >= most]
    return forms
