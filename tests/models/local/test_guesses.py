"""What may follow the tokens of an answer, and when it is worth a try."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from robustrag_integrations.models.local.guesses import BackOff, Guesses


def after(guesses: Guesses, *taken: int, most: int = 16) -> set[tuple[int, ...]]:
    """All that may follow these tokens, each as far as it goes on."""
    trie = guesses.after(taken, most)
    if trie is None:
        return set()
    lines = [tuple(trie.tokens[node] for node in line) for line in trie.lines()]
    return {line for line in lines if not any(other != line and other[: len(line)] == line for other in lines)}


def test_drafts_that_begin_so_or_what_stands_behind_the_same_token_in_the_prompt() -> None:
    guesses = Guesses([(1, 2, 3), (1, 2, 6), (4, 5)], [9, 1, 7, 8, 9])
    assert after(guesses, 1) == {(1, 2, 3), (1, 2, 6)}
    assert after(guesses, 4) == {(4, 5)}
    assert after(guesses, 7, 8) == {(7, 8, 9)}


def test_an_answer_that_goes_on_otherwise_than_its_draft_is_looked_up_in_the_prompt() -> None:
    assert after(Guesses([(1, 2, 3)], [1, 7, 8]), 1, 7) == {(1, 7, 8)}


def test_the_place_behind_most_of_the_last_tokens_is_read_on_from() -> None:
    prompt = [5, 1, 6, 5, 2, 1, 7, 3, 2, 1, 8]
    assert after(Guesses([], prompt), 2, 1) == {(2, 1, 7, 3, 2, 1, 8), (2, 1, 8)}
    assert after(Guesses([], prompt), 3, 2, 1) == {(3, 2, 1, 8)}
    assert after(Guesses([], prompt), 4, 1) == {(4, 1, 6, 5, 2, 1, 7, 3), (4, 1, 7, 3, 2, 1, 8)}


def test_the_first_tokens_of_a_prompt_have_nothing_before_them() -> None:
    assert after(Guesses([], [1, 2, 3]), 3, 1) == {(3, 1, 2, 3)}


def test_nothing_is_known_of_what_nobody_has_said() -> None:
    assert Guesses([(1, 2)], [3, 4]).after([5], 16) is None
    assert Guesses([], []).after([5], 16) is None


def test_a_draft_that_is_said_to_its_end_is_something_known() -> None:
    trie = Guesses([(1, 2)]).after([1, 2], 16)
    assert trie is not None
    assert trie.tokens == [1, 2]


def test_no_more_than_there_is_room_for() -> None:
    trie = Guesses([(1, *range(10, 40))], [1, *range(50, 60)]).after([1], 5)
    assert trie is not None
    assert len(trie) == 5


def tries(found: BackOff, useful: bool, chances: int) -> int:
    """Of so many chances, how many were taken."""
    taken = 0
    for _ in range(chances):
        if found.is_due():
            taken += 1
            found.note(useful)
    return taken


def test_what_is_of_use_is_tried_at_every_chance() -> None:
    assert tries(BackOff(), True, 20) == 20


def test_after_failures_fewer_and_fewer_chances_are_taken_but_never_none() -> None:
    found = BackOff()
    assert [tries(found, False, chances) for chances in (1, 1, 1, 3, 1)] == [1, 0, 1, 0, 1]
    assert tries(found, False, 1600) in range(99, 103)


def test_one_that_was_of_use_makes_up_for_all_failures() -> None:
    found = BackOff()
    tries(found, False, 100)
    assert tries(found, True, 16 + 20) >= 20
    found.reset()
    assert found.is_due()
