"""The words that keyword aggregation shows for the keys that enough groups share, and how long they stay.

Keys of runs of words are shown as most groups write them, and a key that is part of another one is not shown beside it.
Keywords of an extractor of the user's own, the paper's among them, are shown as they are counted, all of them.

Where one key is left, it is the answer. Where keys have to be put together, the final call words the answer and never
decides it (`worded`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from robustrag_integrations.defenses.agreement.agreed import Worded, deciding_keys, forms_of, text_of
from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes, Votes, largest_radius
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.defenses.keyword.counting import KeywordRule, keyword_radius
from robustrag_integrations.keywords.languages import NEGATIONS
from robustrag_integrations.keywords.runs import ReplyKeys, is_part
from robustrag_integrations.models.base import Response


@dataclass(frozen=True)
class Kept:
    """The kept keys, as they are shown.

    Attributes:
        words: the deciding keys with their forms, in the order of the final prompt.
        replies: per group what it says; None for an abstention or a failure.
        weights: per group how many votes it has.
    """

    words: tuple[Worded, ...]
    replies: tuple[ReplyKeys | None, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(
        cls,
        retained: Collection[str],
        replies: Sequence[ReplyKeys | None],
        weights: Sequence[int],
        *,
        as_counted: bool,
    ) -> Kept:
        """Return the words for these retained keys; `as_counted` for keywords of a user's extractor."""
        if as_counted:
            words = tuple(Worded(key, key, (), (True,)) for key in sorted(retained))
        else:
            words = tuple(Worded.of(key, replies, weights) for key in deciding_keys(retained))
        return cls(words, tuple(replies), tuple(weights))

    @property
    def text(self) -> str:
        """The words as an answer."""
        return text_of(self.words)

    @property
    def shown(self) -> tuple[str, ...]:
        """The words as the final prompt lists them."""
        return forms_of(self.words)

    def radius(self, tally: KeywordTally, rule: KeywordRule, *, verbatim: bool) -> int:
        """Return how many votes can be replaced while the same words, with `verbatim` the same letters, are shown."""
        said, keys, idle = self._counted(tally)
        stays = keyword_radius(keys, said, rule, self.weights, idle=idle)
        votes = Votes(len(self.replies), self.weights)
        return min(stays, largest_radius(lambda most: self._forms_stay(votes, most, verbatim), votes.total))

    def holding(self, tally: KeywordTally, rule: KeywordRule, votes: TierVotes, *, verbatim: bool) -> Holding:
        """Tell for each budget of the votes whether the same words, with `verbatim` the same letters, are shown."""
        said, keys, idle = self._counted(tally)
        return rule.holding(said, keys, votes, idle) & self._forms_stay(votes, votes.last, verbatim)

    def _counted(self, tally: KeywordTally) -> tuple[list[frozenset[str] | None], list[str], frozenset[str]]:
        """Return per group what it says, the keys that decide, and the retained ones that do not."""
        keys = [worded.key for worded in self.words]
        said = [None if reply is None else reply.keys for reply in self.replies]
        return said, keys, frozenset(key for key in tally.retained if key not in keys)

    def _forms_stay(self, votes: Votes, most: int, verbatim: bool) -> Holding:
        holds = np.ones(most + 1, bool)
        for each in self.words:
            holds &= each.stays(votes, most, verbatim=verbatim) if each.written else True
        return holds


def worded(final: Response, kept: Kept, reader: ReplyReader) -> str | None:
    """Return the text of a final reply that puts the kept words together: all of them whole, and nothing else.

    Words of the question may stand beside them, but no number and no negation: "5 km" is not what "less than 5 km"
    says, nor "Rome" what "not" and "Rome" say.
    """
    text = (final.text or "").strip()
    said = reader.runs(text)
    held = all(each.key in said.keys or (said.whole and is_part(each.key, said.whole)) for each in kept.words)
    words = {token for each in kept.words for token in reader.runs.tokens(each.form)}
    added = reader.runs.tokens(text) - words
    telling = added & NEGATIONS or any(any(map(str.isdigit, token)) for token in added)
    return text if text and held and not (said.rest - words or telling or reader.abstains(text)) else None
