"""The five methods in as few lines as they take, and what a radius is: read this first.

Each is a function of what the sources say, an abstention being None. The real methods are compared with them on random
worlds (`tests/defenses/test_golden_algorithms.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import TypeVar

Said = TypeVar("Said")
Answer = TypeVar("Answer")


def naive_consensus(replies: Sequence[str | None], min_support: int = 2, *, majority: bool = False) -> str | None:
    """The whole answer that most sources give; of those that begin with yes or no, with more than the others.

    Args:
        replies: per source its answer.
        min_support: the votes that an answer needs.
        majority: True if it also needs more than half of the votes.
    """
    votes = {reply: replies.count(reply) for reply in replies if reply is not None}
    leading = [reply for reply in votes if votes[reply] == max(votes.values())]
    if not leading or votes[leading[0]] < min_support:
        return None
    if majority and 2 * votes[leading[0]] <= sum(votes.values()):
        return None

    sides = {"yes": "no", "no": "yes"}
    opposite = sides.get(leading[0].partition(",")[0])
    opposed = sum(count for reply, count in votes.items() if reply.partition(",")[0] == opposite)
    return leading[0] if len(leading) == 1 and votes[leading[0]] > opposed else None


def naive_voting(votes: Sequence[str | None]) -> str | None:
    """Voting over options: the one with most votes. One vote is enough, and a tie is no answer."""
    return naive_consensus(votes, min_support=1)


def naive_list(replies: Sequence[Collection[str] | None], min_support: int = 2) -> set[str]:
    """Lists: the items that more than half of the sources that list anything give, and `min_support` at least."""
    lists = [reply for reply in replies if reply is not None]
    votes = {item: sum(item in reply for reply in lists) for reply in lists for item in reply}
    return {item for item, count in votes.items() if 2 * count > len(lists) and count >= min_support}


def naive_keywords(replies: Sequence[Collection[str] | None], alpha: str, beta: int) -> set[str]:
    """Keyword aggregation, Algorithm 1: the keywords that go into the final prompt, beside the question alone."""
    answering = [reply for reply in replies if reply is not None]  # line 6
    votes = {word: sum(word in reply for reply in answering) for reply in answering for word in reply}
    threshold = min(Fraction(alpha) * len(answering), Fraction(beta))  # line 12
    return {word for word, count in votes.items() if count >= threshold}  # line 13


def naive_decoding_aggregation(
    passages: Sequence[str],
    abstention: Callable[[str], float],
    next_token: Callable[[str, list[int]], list[float]],
    gamma: float,
    eta: float,
    limit: int,
    end: int,
) -> list[int]:
    """Decoding aggregation, Algorithm 2; the passage "" stands for no retrieval."""
    kept = [p for p in passages if abstention(p) < gamma]  # line 3
    if not kept:
        return []
    answer: list[int] = []
    for _ in range(limit):  # line 4
        vectors = [next_token(p, answer) for p in kept]
        total = [sum(column) for column in zip(*vectors, strict=True)]  # line 8
        order = sorted(range(len(total)), key=lambda t: (-total[t], t))
        first, second = order[0], order[1]  # line 9
        if total[first] - total[second] > eta:
            chosen = first
        else:
            alone = next_token("", answer)  # line 13
            chosen = max(range(len(alone)), key=lambda t: (alone[t], -t))
        if chosen == end:
            break
        answer.append(chosen)
    return answer


def enumerated_radius(
    decide: Callable[[Sequence[Said | None]], Answer], replies: Sequence[Said | None], moves: Sequence[Said | None]
) -> int:
    """The radius as it is defined: no attack on so many sources changes the answer; 0 where there is no answer.

    Args:
        decide: a method, from what the sources say to the answer.
        replies: what they say.
        moves: all that a replaced source may say, in as far as it makes a difference.
    """
    answer = decide(replies)
    for replaced in range(1, len(replies) + 1) if answer else ():
        for places in combinations(range(len(replies)), replaced):
            for said in product(moves, repeat=replaced):
                new = dict(zip(places, said, strict=True))
                if decide([new.get(source, reply) for source, reply in enumerate(replies)]) != answer:
                    return replaced - 1
    return len(replies) if answer else 0
