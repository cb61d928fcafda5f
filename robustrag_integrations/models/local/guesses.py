"""What may follow the tokens of an answer: drafts, or what stands behind the same tokens in its own prompt.

Short answers are mostly words of the passage that they are about. Where an answer has begun with words of its prompt,
it may well go on as the prompt does (prompt lookup decoding).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations.models.local.encoding import Ways
from robustrag_integrations.models.local.trie import TokenTrie

_ALIKE = 3  # last tokens of an answer that are looked for, at most
_PLACES = 2  # in the prompt, from which is read on
_AHEAD = 6  # tokens of it


@dataclass(frozen=True)
class Guesses:
    """What may be said of a prompt.

    Attributes:
        drafts: tokens of answers that may come.
        prompt: the tokens of the prompt; none where nothing is to be looked up.
    """

    drafts: Sequence[Sequence[int]]
    prompt: Sequence[int] = ()

    def after(self, taken: Sequence[int], most: int) -> TokenTrie | None:
        """The tokens of an answer so far and what may follow them, `most` tokens in all; None if nobody knows.

        The prompt is looked up where no draft begins so: every token of a row is read for all rows.

        Args:
            taken: one or more.
            most: no fewer than these.
        """
        begun = tuple(taken)
        known = [draft for draft in self.drafts if tuple(draft[: len(begun)]) == begun]
        known = known or [(*begun, *self.prompt[place : place + _AHEAD]) for place in self._places(begun)]
        trie = TokenTrie([begun])
        for tokens in known:
            trie.add(tokens, most)
        return trie if known else None

    def _places(self, taken: tuple[int, ...]) -> list[int]:
        """Where in the prompt an answer may go on: behind as many of its last tokens as there are in a row."""
        prompt, last = tuple(self.prompt), taken[-1]
        places = [place for place, token in enumerate(prompt, 1) if token == last]
        for length in range(2, 1 + min(_ALIKE, len(taken))):
            longer = [place for place in places if prompt[max(0, place - length) : place] == taken[-length:]]
            places = longer or places
        return places[:_PLACES]


class BackOff:
    """Whether to try again what may be of no use: after failures in a row, twice as many chances each time are let go.

    It decides how fast answers come, and nothing else. Threads may get in each other's way, which does no harm.

    Attributes:
        most: chances that are let go after many failures.
    """

    most = 15

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Try at the next chance."""
        self._wait = self._left = 0

    def is_due(self) -> bool:
        """Whether to take this chance."""
        self._left -= 1
        return self._left < 0

    def note(self, useful: bool) -> None:
        """What came of it."""
        self._wait = 0 if useful else min(1 + 2 * self._wait, self.most)
        self._left = self._wait


class LikelyDrafts(BackOff):
    """The same for drafts that are read before any reply has begun, and in which way a model says answers."""

    most = 63  # prompts may have to be read anew

    def reset(self) -> None:
        """As for a new model."""
        super().reset()
        self._way = 0

    def way_of(self, ways: Ways) -> tuple[int, ...]:
        """The tokens of an answer in the way in which the last replies began."""
        return ways[min(self._way, len(ways) - 1)]

    def said(self, begun: Sequence[Sequence[int]], likely: Sequence[Ways]) -> None:
        """How replies began, and the ways to say what was likely."""
        pairs = zip(begun, likely, strict=False)
        same = Counter(at for tokens, ways in pairs for at, way in enumerate(ways) if way[:1] == tuple(tokens[:1]))
        if same:
            self._way = max(same, key=lambda way: same[way])
