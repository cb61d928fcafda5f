"""Algorithms 1 and 2 of the paper, and consensus, written down slowly, to compare the real ones with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product

UNKNOWN = "I don't know"


def naive_keyword_aggregation(
    responses: Sequence[str],
    unique_keywords: Callable[[str], set[str]],
    alpha: str,
    beta: int,
    final: Callable[[list[str]], str],
) -> str:
    """Algorithm 1 on given isolated responses."""
    counter: dict[str, int] = {}
    n = 0
    for response in responses:  # line 4
        if UNKNOWN not in response:  # line 6
            n = n + 1
            for word in unique_keywords(response):
                counter[word] = counter.get(word, 0) + 1
    mu = min(Fraction(alpha) * n, Fraction(beta))  # line 12
    kept = [word for word in counter if counter[word] >= mu]  # line 13
    return final(sorted(kept)) if kept else UNKNOWN


def naive_decoding_aggregation(
    passages: Sequence[str],
    abstention: Callable[[str], float],
    next_token: Callable[[str, list[int]], list[float]],
    gamma: float,
    eta: float,
    limit: int,
    end: int,
) -> list[int]:
    """Algorithm 2; the passage "" stands for no retrieval."""
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


def enumerated_keyword_radius(keyword_sets: Sequence[set[str] | None], alpha: str, beta: int) -> int:
    """The radius by trying every set of replaced groups, as the definition reads."""
    m = len(keyword_sets)
    counts: dict[str, int] = {}
    for words in keyword_sets:
        for w in words or ():
            counts[w] = counts.get(w, 0) + 1
    n = sum(s is not None for s in keyword_sets)
    mu = min(Fraction(alpha) * n, Fraction(beta))
    retained = {w for w, c in counts.items() if c >= mu}
    for r in range(1, m + 1):
        for replaced in combinations(range(m), r):
            left = [s for i, s in enumerate(keyword_sets) if i not in replaced and s is not None]
            if not left:
                return r - 1
            threshold = min(Fraction(alpha) * (len(left) + r), Fraction(beta))
            if r >= threshold:
                return r - 1
            for w in counts:
                benign = sum(w in s for s in left)
                if (benign < threshold) if w in retained else (benign + r >= threshold):
                    return r - 1
    return m


def naive_consensus(replies: Sequence[str | None], min_support: int, *, majority: bool) -> str | None:
    """The answer that most groups give, a reply being an answer as it is; None where there is none, or a tie."""
    votes = {reply: replies.count(reply) for reply in replies if reply is not None}
    leading = [reply for reply, count in votes.items() if count == max(votes.values())]
    if len(leading) != 1 or votes[leading[0]] < min_support:
        return None
    return leading[0] if not majority or 2 * votes[leading[0]] > sum(votes.values()) else None


def enumerated_consensus_radius(replies: Sequence[str | None], min_support: int, *, majority: bool) -> int:
    """The radius by trying every reply of every set of groups."""
    answer, options = naive_consensus(replies, min_support, majority=majority), {*replies, "new", None}
    if answer is None:
        return 0
    for r in range(1, len(replies) + 1):
        for places in combinations(range(len(replies)), r):
            for said in product(options, repeat=r):
                new = dict(zip(places, said, strict=True))
                attacked = [new.get(i, reply) for i, reply in enumerate(replies)]
                if naive_consensus(attacked, min_support, majority=majority) != answer:
                    return r - 1
    return len(replies)
