"""The likely draft of each group, read together with its prompt: the text of plain steps, often in a single pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel, MajorityVoting  # noqa: E402
from robustrag_integrations.evaluation.data.datasets import load_dataset  # noqa: E402
from robustrag_integrations.models.local import drafted_rows, greedy  # noqa: E402
from robustrag_integrations.models.local.guesses import LikelyDrafts  # noqa: E402
from robustrag_integrations.models.local.shared import MOST_OF_A_ROW  # noqa: E402
from tests.helpers.tiny_models import let_logits_cancel, tiny_model  # noqa: E402
from tests.models.local.test_drafted_rows import (  # noqa: E402
    ARCHITECTURES,
    ELSEWHERE,
    LENGTH,
    local,
    passes,
    replies,
    said,
)
from tests.models.local.test_shared_prefixes import PASSAGES  # noqa: E402

ROWS = len(PASSAGES)
TASKS = {task: load_dataset("demo", task=task, top_k=10, limit=8).questions for task in ("mc", "qa")}


def likely(model: LocalModel, monkeypatch: pytest.MonkeyPatch, *tokens: Sequence[int]) -> None:
    """Have these be the tokens of the likely draft of each prompt, and drafts of all."""
    ways = [(tuple(one),) for one in tokens]
    monkeypatch.setattr(model, "_drafts", lambda prompts: ([way for [way] in ways], ways))


def with_noise_measured(model: LocalModel, rows: Sequence[Sequence[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's first question with likely drafts."""
    likely(model, monkeypatch, *rows)
    replies(model, "a draft")


def ending(model: LocalModel, rows: Sequence[Sequence[int]], at: int) -> list[list[int]]:
    """Have each reply be over by the token at this place at the latest; what is said before it, as drafts."""
    model._codec._ends = frozenset({row[at] for row in rows})
    return [row[: next(i for i, token in enumerate(row) if token in model._codec._ends)] for row in rows]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_replies_are_those_of_plain_steps_whatever_is_likely(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(tiny_model(architecture))
    rows = said(model)
    drafts = ending(model, rows, 4)
    plain = replies(model)
    for tokens in (
        drafts,
        rows,
        [row[:2] for row in rows],
        [drafts[0], *[[9, 8, 7]] * (ROWS - 1)],
        [[*row[:2], 9] for row in rows],
        [[]] * ROWS,
        [row * 20 for row in rows],
        [drafts[1], drafts[0], *drafts[2:]],
    ):
        model._reader.ahead_drafts.reset()
        likely(model, monkeypatch, *tokens)
        assert replies(model, "a draft") == plain


@pytest.mark.parametrize("architecture", [a for a in ARCHITECTURES if a != "gemma2"])
def test_likely_drafts_that_hold_take_no_pass_behind_the_prompts(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(tiny_model(architecture))
    rows = said(model)
    drafts = ending(model, rows, 4)
    plain = replies(model)
    with_noise_measured(model, drafts, monkeypatch)
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    assert len(taken) == ROWS


def test_a_pass_behind_the_prompts_is_for_rows_whose_likely_draft_does_not_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = local()
    rows = said(model)
    drafts = ending(model, rows, 4)
    plain = replies(model)
    with_noise_measured(model, drafts, monkeypatch)
    ways = [(tuple(one),) for one in (*drafts[:-1], [9, 9, 9])]
    monkeypatch.setattr(model, "_drafts", lambda prompts: ([tuple(one) for one in drafts], ways))
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    assert [rows for rows, _ in taken] == [1] * ROWS + [1]


@pytest.mark.parametrize("most", [LENGTH, 20])
def test_a_row_about_which_nobody_knows_more_takes_six_passes_at_most(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(max_new_tokens=most)
    rows = said(model)
    model._codec._ends = frozenset({row[4] for row in rows[: None if most == LENGTH else -1]})
    drafts = [row[: next(i for i, t in enumerate(row) if t in model._codec._ends)] for row in rows[:-1]]
    plain = replies(model)
    with_noise_measured(model, [*drafts, [9]], monkeypatch)
    ways = [(tuple(one),) for one in (*drafts, [9])]
    monkeypatch.setattr(model, "_drafts", lambda prompts: ([tuple(one) for one in drafts], ways))
    replies(model, "a draft")  # what may be measured has been
    model._reader.ahead_drafts.reset()
    monkeypatch.setattr(model._reader.rows_drafts, "is_due", lambda: False)
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    behind = [one for one in taken[ROWS:] if one[0] == 1][:7]
    if most == LENGTH:
        assert 1 <= len(taken[ROWS:]) == len(behind) <= 4
    else:
        assert taken[ROWS:].count((ROWS, 1)) == most - 1  # plain steps, behind prompts that were read anew
        assert [tokens for _, tokens in behind[:6]] == [2, 2, 3, 4, 5, 6]


def test_a_row_in_doubt_takes_all_rows_through_plain_steps_behind_prompts_that_are_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = local()
    drafts = ending(model, said(model), 4)
    with passes(monkeypatch) as taken:
        plain = replies(model)
    with_noise_measured(model, drafts, monkeypatch)
    clear = drafted_rows.clear_leads

    def doubts_the_last(logits: Any, lead: float) -> list[bool]:
        return [*clear(logits, lead)[:-1], False]

    monkeypatch.setattr(drafted_rows, "clear_leads", doubts_the_last)
    monkeypatch.setattr(model._reader.rows_drafts, "is_due", lambda: False)
    assert replies(model, "a draft") == plain  # the first of its kind measures more
    model._reader.ahead_drafts.reset()
    with passes(monkeypatch) as again:
        assert replies(model, "a draft") == plain
    assert again[ROWS:] == taken


def test_twins_whose_lead_is_noise_take_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output rows that cancel to all but noise: the shape of a pass decides between them."""
    network = tiny_model("llama")
    model = local(network)
    assert model.why_not_shared is None
    let_logits_cancel(network)
    plain = replies(model)
    likely(model, monkeypatch, *said(model))
    assert replies(model, "a draft") == plain


def test_what_follows_a_draft_that_is_wrong_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens behind a wrong one are in doubt or not: nobody looks."""
    model = local()
    rows = said(model)
    drafts = ending(model, rows, 4)
    plain = replies(model)
    with_noise_measured(model, drafts, monkeypatch)
    clear = drafted_rows.clear_leads
    wrong = [[9, 8, 7, 6]] * ROWS

    def doubts_what_is_behind(logits: Any, lead: float) -> list[bool]:
        found = clear(logits, lead)
        return [at % 5 == 0 and one for at, one in enumerate(found)] if len(found) == 5 * ROWS else found

    monkeypatch.setattr(drafted_rows, "clear_leads", doubts_what_is_behind)
    likely(model, monkeypatch, *wrong)
    begun: list[Any] = []
    answered = greedy.answered
    monkeypatch.setattr(
        greedy, "answered", lambda batch, first, *rest: begun.append(first) or answered(batch, first, *rest)
    )
    assert replies(model, "a draft") == plain
    assert begun[0] == [row[:1] for row in rows]


def test_prompts_that_are_longer_than_a_pass_are_read_without(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local(prefill_tokens=4)
    drafts = ending(model, said(model), 4)
    plain = replies(model)
    likely(model, monkeypatch, *drafts)
    for _ in range(2):
        assert replies(model, "a draft") == plain
    assert model._reader.ahead_noise.values == [float("inf")]


def test_a_model_that_cannot_be_read_so_takes_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    drafts = ending(model, said(model), 4)
    plain = replies(model)
    likely(model, monkeypatch, *drafts)

    def refuses(*args: Any) -> Any:
        raise RuntimeError("no such mask")

    monkeypatch.setattr(drafted_rows.SharedBatch, "open_ahead", refuses)
    assert replies(model, "a draft") == plain
    assert model._reader.ahead_noise.values == [float("inf")]


@ELSEWHERE
def test_elsewhere_prompts_are_read_by_themselves(
    architecture: str, dtype: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(tiny_model(architecture, dtype=dtype), **settings)
    plain = replies(model)
    likely(model, monkeypatch, *said(local(tiny_model(architecture, dtype=dtype))))
    assert replies(model, "a draft") == plain
    assert model._reader.ahead_noise.values == []


def test_after_likely_drafts_that_did_not_hold_the_next_question_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    rows = said(model)
    drafts = ending(model, rows, 4)
    with_noise_measured(model, drafts, monkeypatch)
    likely(model, monkeypatch, *[[9, 9]] * ROWS)
    tried: list[object] = []
    opened = drafted_rows.SharedBatch.open_ahead

    def noted(batch: Any, behind: Any) -> Any:
        tried.append(behind)
        return opened(batch, behind)

    monkeypatch.setattr(drafted_rows.SharedBatch, "open_ahead", noted)
    found = []
    for _ in range(6):
        replies(model, "a draft")
        found.append(len(tried))
    assert found == [1, 1, 2, 2, 2, 2]


def test_prompts_that_are_the_same_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    drafts = ending(model, said(model), 4)
    plain = replies(model, passages=[*PASSAGES, PASSAGES[0]])
    with_noise_measured(model, drafts, monkeypatch)
    likely(model, monkeypatch, *drafts, drafts[0])
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft", passages=[*PASSAGES, PASSAGES[0]]) == plain
    assert len(taken) == ROWS


@pytest.mark.parametrize(("most", "tokens"), [(3, 2), (40, MOST_OF_A_ROW)])
def test_no_more_is_read_than_a_row_holds_or_an_answer_has(
    most: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(max_new_tokens=most)
    with_noise_measured(model, said(model), monkeypatch)
    with passes(monkeypatch) as taken:
        replies(model)
    likely(model, monkeypatch, *[[9] * 50] * ROWS)
    with passes(monkeypatch) as ahead:
        replies(model, "a draft")
    assert [longer - own for (_, own), (_, longer) in zip(taken[:ROWS], ahead, strict=False)] == [tokens] * ROWS


def test_the_way_in_which_a_model_says_answers_is_learnt() -> None:
    drafts = LikelyDrafts()
    ways = [((1, 2), (3, 4)), ((5,), (6, 7))]
    assert [drafts.way_of(one) for one in ways] == [(1, 2), (5,)]
    drafts.said([[3, 4, 0], [6]], ways)
    assert [drafts.way_of(one) for one in ways] == [(3, 4), (6, 7)]
    drafts.said([[9], [9]], ways)
    drafts.said((), ways)
    assert drafts.way_of(ways[0]) == (3, 4)
    drafts.said([[1]], ways)
    assert drafts.way_of(ways[0]) == (1, 2)
    assert drafts.way_of(((), (1,))) == ()
    drafts.said([[4], [6]], ways)
    drafts.reset()
    assert drafts.way_of(ways[1]) == (5,)


def test_voting_gives_the_same_answers_from_likely_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    defense = MajorityVoting(LocalModel.bundled(), group_by="passage")
    found, alone = [], 0
    for question in TASKS["mc"]:
        with passes(monkeypatch) as taken:
            found.append(defense.answer(question.question, question.passages, choices=question.choices))
        alone += all(rows == 1 for rows, _ in taken)
    assert alone >= len(TASKS["mc"]) // 3  # nothing had to be read behind the prompts
    monkeypatch.setattr(LikelyDrafts, "is_due", lambda self: False)
    plain = MajorityVoting(LocalModel.bundled(), group_by="passage")
    for question, before in zip(TASKS["mc"], found, strict=True):
        after = plain.answer(question.question, question.passages, choices=question.choices)
        assert (after.text, after.radius, after.groups) == (before.text, before.radius, before.groups)
