"""In how many passages the answer stands, and that it bounds what is certified."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.evaluation.score.presence import answer_presence
from tests.evaluation.rows import PIA, certificate, row


def asked(number: int, holds: str, **change: Any) -> dict[str, Any]:
    """A question with a passage per letter, x where it holds the answer."""
    texts = ["The mill is run by Anna!" if c == "x" else "Annabel does not say." for c in holds]
    return row(number, passages=[{"text": text, "planted": False} for text in texts], **change)


def test_passages_and_questions_with_the_answer_are_counted_as_words() -> None:
    rows = [asked(1, "x.x."), asked(2, "...."), asked(2, "....", setup="vanilla"), asked(3, "xxxx", attack=PIA)]
    [found] = answer_presence(rows)
    assert (found.dataset, found.task, found.top_k, found.n) == ("demo", "qa", 10, 2)
    assert (found.passages.mean, found.found.mean) == (0.25, 0.5)


@pytest.mark.parametrize(
    ("holds", "injection", "modification"),
    [("x...", [1, 1], [0, 0]), ("...x", [0, 0], [0, 0]), ("..xx", [1, 0], [1, 0]), ("xxx.", [1, 1], [1, 1])],
)
def test_injection_ejects_the_last_passages_and_modification_any(
    holds: str, injection: list[int], modification: list[int]
) -> None:
    certified = [certificate(0.0, k, attack) for k in (1, 2) for attack in ("injection", "modification")]
    [found] = answer_presence([asked(1, holds, top_k=4, certificates=certified)])
    assert [found.bound["injection", k].mean for k in (1, 2)] == injection
    assert [found.bound["modification", k].mean for k in (1, 2)] == modification


def test_a_list_that_is_not_full_loses_nothing_to_injection() -> None:
    [found] = answer_presence([asked(1, "..x", top_k=10)])
    assert found.bound["injection", 1].mean == 1.0


def test_a_passage_that_also_says_it_does_not_know_still_holds_the_answer() -> None:
    passages = [{"text": "I don't know who, but Anna was there. The text does not say more."}]
    assert answer_presence([row(1, passages=passages)])[0].found.mean == 1.0


def test_long_answers_and_runs_without_passages_have_none() -> None:
    assert answer_presence([asked(1, "x", task="long"), row(2)]) == ()


def test_a_question_for_which_nothing_was_retrieved_has_no_answer_there() -> None:
    rows = [asked(1, "x."), asked(2, "")]
    [found] = answer_presence(rows)
    assert (found.n, found.found.mean, found.passages.mean) == (2, 0.5, 0.5)
    assert found.bound["injection", 1].mean == 0.5
    assert answer_presence(rows[1:]) == ()
    assert answer_presence([asked(1, "", setup="no-rag"), asked(1, "x.")])[0].found.mean == 1
