"""Who owns what was retrieved, and which certificate covers it: compared with the definitions by brute force."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.evaluation.retrieval.owners import displaced, owned, retrieved
from robustrag_integrations.grouping.passages import Passage


def passages(names: str, **sources: str) -> list[Passage]:
    return [Passage(name, id=name, source=sources.get(name, name)) for name in names]


def test_votes_are_counted_by_the_rule() -> None:
    made = [
        Passage("1", id="1", source="https://evil.example/a", metadata={"author": "m"}),
        Passage("2", id="2", source="https://evil.example/b", metadata={"author": "m"}),
        Passage("3", id="3", source="https://evil.example/b", metadata={"author": "m"}),
        Passage("4", id="4", source="https://good.example/", metadata={"author": "a"}),
    ]
    counts = {rule: owned(made, {"1", "2", "3"}, rule) for rule in ("passage", "origin", "author")}
    assert {rule: (c.owned, c.groups) for rule, c in counts.items()} == {
        "passage": (3, 4),
        "origin": (2, 3),
        "author": (1, 2),
    }


def test_votes_are_counted_by_site() -> None:
    pytest.importorskip("tldextract", reason="the extra site is not installed")
    made = [Passage("1", id="1", source="https://a.evil.com/1"), Passage("2", id="2", source="https://b.evil.com/2")]
    assert owned(made, {"1"}, "site").groups == 1


def test_a_group_with_one_planted_passage_is_owned() -> None:
    made = [Passage(str(i), id=str(i), source="wiki") for i in range(3)]
    assert (owned(made, {"2"}, "origin").owned, owned(made, {"2"}, "origin").groups) == (1, 1)


def test_with_a_limit_per_source_more_is_fetched() -> None:
    ranked = [Passage(str(i), id=str(i), source="flood" if i < 200 else f"{i}") for i in range(210)]
    found = retrieved(lambda query, k: ranked[:k], "?", 5, 1, "origin")
    assert [p.id for p in found] == ["0", "200", "201", "202", "203"]


def covers(clean: str, attacked: str, size: int, top_k: int) -> bool:
    """Whether injection(size) can turn one list into the other: added ones anywhere, the last ones fall out."""
    kept = clean[: min(len(clean), top_k - size)] if len(clean) + size > top_k else clean
    added = len(attacked) - len(kept)
    if not 0 <= added <= size:
        return False
    return any("".join(attacked[i] for i in at) == kept for at in combinations(range(len(attacked)), len(kept)))


@given(st.permutations("abcde"), st.permutations("abcdeXYZ"), st.integers(0, 5), st.integers(0, 5), st.integers(5, 6))
def test_a_certificate_for_what_was_displaced_covers_the_attacked_retrieval(
    clean: list[str], attacked: list[str], n: int, more: int, top_k: int
) -> None:
    before, after = "".join(clean[:n]), "".join(attacked)[: min(n + more, top_k)]
    size = displaced(passages(before), passages(after), top_k)
    assert size <= top_k
    if len(after) >= len(before):
        assert covers(before, after, size, top_k)
        assert not any(covers(before, after, smaller, top_k) for smaller in range(size))


def test_nothing_planted_displaces_nothing() -> None:
    assert displaced(passages("abc"), passages("abc"), 3) == 0
    assert displaced(passages("abc"), passages("aXb"), 3) == 1
    assert displaced(passages("abc"), passages("XYZ"), 3) == 3
    assert displaced(passages("abc"), passages("bac"), 3) == 2  # a lower certificate says nothing of another order
