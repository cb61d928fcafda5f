"""What is known of one row of a session on a server: its list after each prefix of the answer, and where it is from.

A row is *ahead* as long as what the server wrote after its prompt is what the answer says: its lists then stand in that
reply. From the first token on that the answer has in place of its own, each of its lists is from a request for one more
token. Which of the two it is depends on the row's own replies and the answer's tokens alone: what else is guessed, and
asked for early, decides nothing. So no group decides how another one's probabilities are computed.

What the rows say is also what the answer's next tokens are guessed from, and how far a server's numbers drift. Neither
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
        """The row's list after these tokens of the answer, if it is known."""
        return self.own(prefix) or self.asked(prefix)

    def own(self, prefix: Tokens) -> TokenList | None:
        """The same, from the reply that the row follows."""
        return self.reply.after(prefix[self.start :]) if self.reply is not None else None

    def asked(self, prefix: Tokens) -> TokenList | None:
        """The same, from a request of its own."""
        return next((listing for tokens, listing in self.apart if tokens == prefix), None)

    def guessed(self, prefix: Tokens) -> TokenList | None:
        """What the list may be like."""
        if (known := self.list_after(prefix)) is not None or self.guess is None:
            return known
        begin, reply = self.guess
        return reply.after(prefix[len(begin) :]) if prefix[: len(begin)] == begin else None

    def is_ahead(self, prefix: Tokens) -> bool:
        """Whether its list after these tokens is not the first one of a reply."""
        return len(prefix) > self.start and self.own(prefix) is not None

    def goes_on(self, prefix: Tokens, length: int) -> bool:
        """Whether the answer said all of a reply of `length` tokens, so that the row may be asked for as many more."""
        return self.reply is not None and len(self.reply.tokens) == length and prefix[self.start :] == self.reply.tokens

    def following(self, prefix: Tokens, reply: Continuation) -> Row:
        """The row with a new reply to follow."""
        return replace(self, start=len(prefix), reply=reply)

    def alone(self) -> Row:
        """The row as one that is read token by token from its first list on."""
        return self if self.reply is None else replace(self, reply=Continuation(self.reply.lists[:1]))

    def knowing(self, prefix: Tokens, reply: Continuation) -> Row:
        """The row with one more list, and a guess if there is more in the reply."""
        guess = (prefix, reply) if reply.tokens else self.guess
        return replace(self, apart=(*self.apart, (prefix, reply.lists[0])), guess=guess)

    def moved(self, prefix: Tokens) -> Row:
        """The row without what cannot come any more."""
        kept = tuple((tokens, listing) for tokens, listing in self.apart if tokens[: len(prefix)] == prefix)
        said = prefix[self.start :]
        follows = self.reply is not None and said == self.reply.tokens[: len(said)]
        return replace(self, apart=kept, reply=self.reply if follows else None)


@dataclass(frozen=True)
class Draft:
    """How the answer may go on.

    Attributes:
        tokens: the tokens that are likely to come.
        open: whether nothing is known of what comes after them; else the answer is thought to end there.
    """

    tokens: Tokens
    open: bool


def drafted(rows: Iterable[Row], prefix: Tokens, most: int, ends: Callable[[int], bool]) -> Draft:
    """The best token of all these rows together, one after another, as far as any of them goes.

    Args:
        rows: those that are expected to take part.
        prefix: the answer so far.
        most: how many tokens at most.
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
    """How far two lists of the same tokens differ, at least."""
    gaps = [abs(one.listed[token] - other.listed[token]) for token in one.listed.keys() & other.listed.keys()]
    for here, there in ((one, other), (other, one)):
        gaps += [p - there.unlisted for token, p in here.listed.items() if token not in there.listed]
    return max(gaps, default=1.0)
