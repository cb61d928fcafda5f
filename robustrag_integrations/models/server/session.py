"""A decoding session on a server: rows are read ahead, and token by token where they and the answer part.

A request for several tokens gives a row's lists for as long as it agrees with the answer. Missing lists are asked for
in one round, together with those that will be missing if the answer goes on as most groups do.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.answers.usage import Usage, together
from robustrag_integrations.errors import ModelError, QuorumError
from robustrag_integrations.models.base import DecodingSession, Distributions, Opening
from robustrag_integrations.models.server.completions import Continuation
from robustrag_integrations.models.server.row import Row, Tokens, drafted, drift_between
from robustrag_integrations.models.server.token_lists import TokenList
from robustrag_integrations.models.tokenizer_codec import TokenizerCodec

_LONGER = 8  # the factor by which lists grow where they leave a choice open
_NEGLIGIBLE = 1e-6  # a beginning of "I don't know" as improbable as this is not followed any further
_CHECKED = 3  # lists of the question that are asked for once more, to see how far a server's lists drift
_SAFETY = 4  # drift is taken to be this multiple of what was seen
_MOST_DRIFT = 0.25  # in a gap between two sums; above it, rows are read token by token
_Place = tuple[int, Tokens]  # a row, and the answer's tokens


class ServerRefusal(ModelError):
    """A lasting refusal: the server will never do what was asked."""


@dataclass(frozen=True)
class Wanted:
    """One request: the tokens of the prompt, and how many more are asked for."""

    prompt: Tokens
    length: int


class ListServer(Protocol):
    """Gives sessions their lists.

    Attributes:
        abstentions: the tokens that spell the abstention string.
        top_logprobs: number of tokens that each list is asked to hold.
        most_logprobs: how many one may hold, as far as is known.
        speculate: number of tokens that a row is asked for at once.
        drift: how far probabilities of a reply of several tokens were from those of a request for one token.
    """

    abstentions: tuple[Tokens, ...]
    top_logprobs: int
    most_logprobs: int
    speculate: int
    drift: float | None

    @property
    def codec(self) -> TokenizerCodec:
        """Its tokens as text."""
        ...

    def ask(self, wanted: Sequence[Wanted], count: int) -> list[Continuation | ModelError]:
        """Return each prompt's continuation, with the `count` most probable tokens at each position."""
        ...

    def learn_dialect(self) -> list[str]:
        """Find the server's dialect; return its refusals of all dialects if it takes none, else nothing."""
        ...


class RemoteSession(DecodingSession):
    """A decoding session on a server; the last row is the question alone.

    A row whose request fails counts as a group that abstains from then on. A request that only looks ahead fails at no
    cost: its lists are asked for again once they are needed.
    """

    def __init__(
        self,
        model: ListServer,
        prompts: Sequence[Tokens],
        truncated: tuple[bool, ...],
        max_new_tokens: int,
    ) -> None:
        self._model = model
        self._rows = {row: Row(tuple(prompt)) for row, prompt in enumerate(prompts)}
        self._question = len(prompts) - 1
        self._limit = max_new_tokens
        self._prefix: Tokens = ()
        self._failed: dict[int, str] = {}
        self._lists: dict[int, TokenList] = {}
        self._spent: dict[int, tuple[Usage, ...]] = {}
        self._rounds = 0
        self._drift = 0.0
        self._asked_again = False
        self._reads_ahead = model.speculate > 1
        self._quiet: frozenset[int] = frozenset()  # groups that are not expected to take part
        self._count = model.top_logprobs
        self._begin()
        abstention = self._abstentions()
        self._quiet = frozenset(np.flatnonzero(abstention >= 0.5).tolist())
        if self._question and len(self._failed) == self._question:
            raise QuorumError(0, self._question, 1, self._failed)
        self.opening = Opening(abstention, self._distributions(), truncated)

    def append(self, token: int) -> Distributions:
        """Return the lists after this token in every row; missing ones are asked for."""
        self._prefix = (*self._prefix, token)
        self._count = self._model.top_logprobs
        self._asked_again = False
        self._rows = {row: known.moved(self._prefix) for row, known in self._rows.items()}
        self._fill()
        self._take()
        return self._distributions()

    def sharpen(self) -> Distributions | None:
        """Ask again for lists read ahead; after that, for longer lists; None if the server has no longer ones."""
        if ahead := self._ahead():
            self._asked_again = True
            self._replace(self._ask({(row, self._prefix): 1 for row in ahead}, self._count))
            return self._distributions()
        count = min(self._count * _LONGER, self._model.most_logprobs)
        if count <= self._count:
            return None
        vague = [row for row, tokens in self._lists.items() if tokens.unlisted > 0 or row == self._question]
        replies = self._ask({(row, self._prefix): 1 for row in vague}, count)
        if isinstance(replies[self._question, self._prefix], ServerRefusal):
            self._model.most_logprobs = self._count
            return None
        self._count = count
        self._replace(replies)
        return self._distributions()

    def fork(self) -> DecodingSession:
        """Return an independent copy: a session is no more than its rows."""
        twin = copy.copy(self)
        twin._rows, twin._failed = dict(self._rows), dict(self._failed)
        twin._lists, twin._spent = dict(self._lists), dict(self._spent)
        return twin

    # --- the beginning

    def _begin(self) -> None:
        """Ask every row; where the server refuses even the question, learn its dialect and ask again."""
        wanted: dict[_Place, int] = {(row, ()): self._length(()) for row in self._rows}
        replies = self._ask(wanted, self._count)
        if isinstance(replies[self._question, ()], ServerRefusal):
            if refusals := self._model.learn_dialect():
                raise ModelError(f"the question alone cannot be asked: {'; '.join(refusals)}")
            replies = self._ask(wanted, self._count)
        self._follow(replies)
        self._take()
        self._quiet = frozenset(row for row in self._lists if self._says_nothing(row))

    def _abstentions(self) -> NDArray[np.float64]:
        """Return an upper bound on each group's probability of the whole abstention string.

        The same round asks for the lists that the next tokens will need, and those that show the server's drift.
        """
        checks = self._checks()
        early = dict(checks)
        while True:
            needed: dict[_Place, int] = {}
            spelled: dict[int, float] = {}
            for row in [row for row in self._lists if row != self._question]:
                spelled[row], missing = self._spelled(row)
                needed |= {(row, tokens): 1 for tokens in missing}
            if not needed and not early:
                break
            if self._reads_ahead:
                early |= self._likely(())
                early |= {(row, more): 1 for row, tokens in needed for more in self._rest_of_spelling(tokens)}
            self._learn(needed, early)
            early = {}
            self._judge(checks)
            checks = {}
        return np.array([spelled.get(row, np.nan) for row in range(self._question)])

    def _spelled(self, row: int) -> tuple[float, list[Tokens]]:
        """Return the probability of a row's abstention, as far as it is known, and the lists that are missing."""
        spelled, missing = 0.0, []
        for tokens in self._model.abstentions:
            probability = self._lists[row].most(tokens[0])
            for known in range(1, len(tokens)):
                if probability < _NEGLIGIBLE:
                    break
                listing = self._rows[row].asked(tokens[:known])
                if listing is None:
                    missing.append(tokens[:known])
                    break
                probability *= listing.most(tokens[known])
            spelled += probability
        return spelled, missing

    def _rest_of_spelling(self, tokens: Tokens) -> list[Tokens]:
        """Return the longer parts of the abstention strings that begin with these tokens."""
        strings = [string for string in self._model.abstentions if string[: len(tokens)] == tokens]
        return [string[:known] for string in strings for known in range(len(tokens) + 1, len(string))]

    def _says_nothing(self, row: int) -> bool:
        """Tell whether a row's reply begins with the abstention string, as far as it goes."""
        reply = self._rows[row].reply
        begun = reply.tokens if reply is not None else ()
        return any(begun and begun[: len(string)] == string[: len(begun)] for string in self._model.abstentions)

    # --- drift

    def _checks(self) -> dict[_Place, int]:
        """Return the requests that measure drift, where it is unknown: of the question alone, without passages."""
        reply = self._rows[self._question].reply
        if not self._reads_ahead or reply is None or self._model.drift is not None:
            self._judge({})
            return {}
        places = range(1, min(len(reply.lists), _CHECKED + 1))
        if not places:
            self._read_alone()
        return {(self._question, reply.tokens[:known]): 1 for known in places}

    def _judge(self, checks: Mapping[_Place, int]) -> None:
        """Compare lists that were asked for twice; where they differ much, or are missing, read token by token."""
        if checks:
            row = self._rows[self._question]
            pairs = [(row.own(tokens), row.asked(tokens)) for _, tokens in checks]
            known = [drift_between(one, other) for one, other in pairs if one is not None and other is not None]
            if len(known) < len(checks):
                self._read_alone()
                return
            self._model.drift = max(known)
        self._drift = 2 * _SAFETY * (self._model.drift or 0.0)  # of a gap between two probabilities
        if self._drift * self._question > _MOST_DRIFT:
            self._read_alone()

    def _read_alone(self) -> None:
        self._reads_ahead = False
        self._rows = {row: known.alone() for row, known in self._rows.items()}

    def _ahead(self) -> list[int]:
        """Return the rows whose lists are read ahead."""
        if self._asked_again:
            return []
        return [row for row in self._lists if self._rows[row].is_ahead(self._prefix)]

    # --- asking

    def _length(self, prefix: Tokens) -> int:
        """Return the number of tokens that a row may be asked for after this prefix."""
        return min(self._model.speculate if self._reads_ahead else 1, max(1, self._limit - len(prefix)))

    def _living(self) -> list[int]:
        return [row for row in self._rows if row not in self._failed]

    def _fill(self) -> None:
        """Ask for the lists that the next step lacks, and for those that will be lacking soon."""
        here, full = self._prefix, self._model.speculate
        lacking = [row for row in self._living() if self._rows[row].list_after(here) is None]
        if not lacking:
            return
        likely = self._likely(here)
        on = {(row, here): self._length(here) for row in lacking if full > 1 and self._rows[row].goes_on(here, full)}
        needed = {(row, here): likely.get((row, here), 1) for row in lacking if (row, here) not in on}
        replies = self._learn(needed, {place: n for place, n in likely.items() if place not in on}, also=on)
        self._follow({place: replies[place] for place in on})

    def _likely(self, prefix: Tokens) -> dict[_Place, int]:
        """Return the lists that rows lack after this prefix and its likely sequels, with the tokens to ask for."""
        groups = [row for row in self._living() if row != self._question]
        drafting = [row for row in groups if row not in self._quiet] or groups
        longest = self._length(prefix) - 1
        draft = drafted([self._rows[row] for row in drafting], prefix, longest, self._may_be_last)
        likely: dict[_Place, int] = {}
        for known in range(len(draft.tokens) + 1):
            place = (*prefix, *draft.tokens[:known])
            last = draft.open and known == len(draft.tokens)
            for row in self._living():
                if self._rows[row].list_after(place) is None:
                    likely[row, place] = self._length(place) if last and row != self._question else 1
        return likely

    def _may_be_last(self, token: int) -> bool:
        codec = self._model.codec
        return codec.is_end(token) or "\n" in codec.decode([token])

    def _ask(self, wanted: Mapping[_Place, int], count: int) -> dict[_Place, Continuation | ModelError]:
        """Send all requests at once, in one round."""
        requests = [Wanted((*self._rows[row].prompt, *tokens), length) for (row, tokens), length in wanted.items()]
        replies = dict(zip(wanted, self._model.ask(requests, count), strict=True))
        for (row, _), reply in replies.items():
            usages = (Usage(),) if isinstance(reply, ModelError) else reply.asked
            self._spent[row] = (*self._spent.get(row, ()), *usages)
        self._rounds += max((len(r.asked) for r in replies.values() if isinstance(r, Continuation)), default=1)
        return replies

    def _learn(
        self, needed: Mapping[_Place, int], early: Mapping[_Place, int], *, also: Mapping[_Place, int] | None = None
    ) -> dict[_Place, Continuation | ModelError]:
        """Ask for lists in one round, and keep them; only lists that are needed now make their row fail."""
        replies = self._ask({**early, **needed, **(also or {})}, self._count)
        for place, reply in replies.items():
            row, tokens = place
            if also is not None and place in also:
                continue
            if isinstance(reply, Continuation):
                self._rows[row] = self._rows[row].knowing(tokens, reply)
            elif place in needed:
                self._fail(row, reply)
        return replies

    def _follow(self, replies: Mapping[_Place, Continuation | ModelError]) -> None:
        for (row, tokens), reply in replies.items():
            if isinstance(reply, Continuation):
                self._rows[row] = self._rows[row].following(tokens, reply)
            else:
                self._fail(row, reply)

    def _replace(self, replies: Mapping[_Place, Continuation | ModelError]) -> None:
        """Replace this step's lists."""
        for (row, _), reply in replies.items():
            if isinstance(reply, Continuation):
                self._lists[row] = reply.lists[0]
            else:
                self._fail(row, reply)

    def _fail(self, row: int, error: ModelError) -> None:
        if row == self._question:
            raise ModelError(f"the question alone cannot be asked: {error}")
        self._failed.setdefault(row, str(error))
        self._lists.pop(row, None)

    def _take(self) -> None:
        """Set this step's lists from the rows."""
        known = {row: self._rows[row].list_after(self._prefix) for row in self._living()}
        self._lists = {row: listing for row, listing in known.items() if listing is not None}

    def _distributions(self) -> Distributions:
        highest = max(max(tokens.listed, default=0) for tokens in self._lists.values())
        width = max(self._model.codec.size, highest + 1)
        rows = np.zeros((len(self._rows), width))
        for row, tokens in self._lists.items():
            rows[row, list(tokens.listed)] = list(tokens.listed.values())
        ahead = self._ahead()
        doubt = {row: listing.unlisted + self._drift * (row in ahead) for row, listing in self._lists.items()}
        return Distributions(
            rows[:-1],
            rows[-1],
            noise=max(doubt.values()),
            unlisted=tuple(doubt.get(row, 0.0) for row in range(self._question)),
            failures=tuple(self._failed.get(row) for row in range(self._question)),
            spent=tuple(together(self._spent[row]) for row in self._rows),
            calls=sum(map(len, self._spent.values())),
            rounds=self._rounds,
            ahead=bool(ahead),
        )
