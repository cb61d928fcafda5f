"""One row of a session on a server: its known lists, one per prefix of the answer, and the replies they are from.

A row is *ahead* as long as the server's reply to its prompt agrees with the answer: its lists then stand in that reply.
From the first token at which they part, each of its lists is from a request for one more token. That depends on the
row's own replies and the answer's tokens alone: guesses, and what is asked for early, decide nothing. So no group
decides how another one's probabilities are computed.

The rows' lists also serve to guess the answer's next tokens, and to measure how far a server's numbers drift. Neither
decides a token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from robustrag_integrations.models.server.completions import Continuation
from robustrag_integrations.models.server.token_lists import TokenList

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One row; a frozen value, so that a fork of the session shares it.

    Attributes:
        prompt: its tokens.
        start: where in the answer the reply that it follows begins.
        reply: that reply; None: it is read token by token.
        apart: the lists that requests of their own gave, by the answer's tokens before them.
        guess: a reply that only guesses what comes next, and where it begins.
    """

    prompt: Tokens
    start: int = 0
    reply: Continuation | None = None
    apart: tuple[tuple[Tokens, TokenList], ...] = ()
    guess: tuple[Tokens, Continuation] | None = None

    def list_after(self, prefix: Tokens) -> TokenList | None:
        """Return the row's list after these tokens of the answer, if it is known."""
        return self.own(prefix) or self.asked(prefix)

    def own(self, prefix: Tokens) -> TokenList | None:
        """Return that list from the reply that the row follows, if it is there."""
        return self.reply.after(prefix[self.start :]) if self.reply is not None else None

    def asked(self, prefix: Tokens) -> TokenList | None:
        """Return that list from a request of its own, if there was one."""
        return next((listing for tokens, listing in self.apart if tokens == prefix), None)

    def guessed(self, prefix: Tokens) -> TokenList | None:
        """Return that list, or a guess of it, if there is either."""
        if (known := self.list_after(prefix)) is not None or self.guess is None:
            return known
        begin, reply = self.guess
        return reply.after(prefix[len(begin) :]) if prefix[: len(begin)] == begin else None

    def is_ahead(self, prefix: Tokens) -> bool:
        """True if its list after these tokens is not the first one of a reply."""
        return len(prefix) > self.start and self.own(prefix) is not None

    def goes_on(self, prefix: Tokens, length: int) -> bool:
        """Tell whether the answer agrees with a whole reply of `length` tokens: the row may be asked for more then."""
        return self.reply is not None and len(self.reply.tokens) == length and prefix[self.start :] == self.reply.tokens

    def following(self, prefix: Tokens, reply: Continuation) -> Row:
        """Return the row with a new reply to follow."""
        return replace(self, start=len(prefix), reply=reply)

    def alone(self) -> Row:
        """Return the row as one that is read token by token after its first list."""
        return self if self.reply is None else replace(self, reply=Continuation(self.reply.lists[:1]))

    def knowing(self, prefix: Tokens, reply: Continuation) -> Row:
        """Return the row with one more list, and a guess if there is more in the reply."""
        guess = (prefix, reply) if reply.tokens else self.guess
        return replace(self, apart=(*self.apart, (prefix, reply.lists[0])), guess=guess)

    def moved(self, prefix: Tokens) -> Row:
        """Return the row without the lists that the answer has ruled out."""
        kept = tuple((tokens, listing) for tokens, listing in self.apart if tokens[: len(prefix)] == prefix)
        said = prefix[self.start :]
        follows = self.reply is not None and said == self.reply.tokens[: len(said)]
        return replace(self, apart=kept, reply=self.reply if follows else None)


@dataclass(frozen=True)
class Draft:
    """A draft of the answer's next tokens.

    Attributes:
        tokens: the tokens that are likely to come.
        open: True if the tokens after them are unknown; otherwise the answer is likely to end there.
    """

    tokens: Tokens
    open: bool


def drafted(rows: Iterable[Row], prefix: Tokens, most: int, ends: Callable[[int], bool]) -> Draft:
    """Draft the answer's next tokens: each the best of all these rows together, as far as any row goes.

    Args:
        rows: those that are expected to take part.
        prefix: the answer so far.
        most: the most tokens to draft.
        ends: whether a token is likely to be the last one.
    """
    ahead = list(rows)
    tokens: Tokens = ()
    while len(tokens) < most:
        lists = [row.guessed((*prefix, *tokens)) for row in ahead]
        sums: Counter[int] = Counter()
        for listing in lists:
            sums.update(listing.listed if listing is not None else {})
        if not sums:
            return Draft(tokens, open=True)
        best = min(sums, key=lambda token: (-sums[token], token))
        if ends(best):
            break
        tokens = (*tokens, best)
    return Draft(tokens, open=False)


def drift_between(one: TokenList, other: TokenList) -> float:
    """Return a lower bound on the difference of two lists after the same tokens."""
    gaps = [abs(one.listed[token] - other.listed[token]) for token in one.listed.keys() & other.listed.keys()]
    for here, there in ((one, other), (other, one)):
        gaps += [p - there.unlisted for token, p in here.listed.items() if token not in there.listed]
    return max(gaps, default=1.0)
