"""Replies of several groups verified from drafts: the text of plain steps, in one pass in place of a step per token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import ConsensusAggregation, KeywordAggregation, LocalModel, MajorityVoting  # noqa: E402
from robustrag_integrations.evaluation.data.datasets import load_dataset  # noqa: E402
from robustrag_integrations.models.base import Response  # noqa: E402
from robustrag_integrations.models.local import drafted_rows, greedy  # noqa: E402
from robustrag_integrations.models.local.causal_lm import CausalLM  # noqa: E402
from robustrag_integrations.prompts import NO_INFORMATION, SHORT_DRAFTS, Prompt, prompts_for  # noqa: E402
from tests.helpers.tiny_models import let_logits_cancel, tiny_model  # noqa: E402
from tests.models.local.test_shared_prefixes import PASSAGES, QUERY, TOKENIZER  # noqa: E402

ARCHITECTURES = ["llama", "mistral", "qwen3", "gemma2", "gemma3", "phi3", "gpt2", "neox"]
PROMPTS = prompts_for("short_answer")
LENGTH = 7  # tokens of a reply at most
ELSEWHERE = pytest.mark.parametrize(
    ("architecture", "dtype", "settings"),
    [
        ("llama", torch.bfloat16, {}),
        ("gemma2", torch.float32, {}),
        ("llama", torch.float32, {"fixed_shapes": True}),
        ("llama", torch.float32, {"rows_at_once": 8}),
    ],
    ids=["half precision", "attention of its own", "fixed shapes", "steps shared with other questions"],
)
"""Where no drafts of several rows are read."""
LONG_ROPE = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}


def local(network: Any = None, **changes: Any) -> LocalModel:
    return LocalModel(network or tiny_model("llama"), TOKENIZER, **{"max_new_tokens": LENGTH, "stop": (), **changes})


def replies(model: LocalModel, *texts: str, prompts: Any = PROMPTS, passages: Sequence[str] = PASSAGES) -> Any:
    isolated = [prompts.isolated.render(context=text, query=QUERY) for text in passages]
    found: list[Response] = model.generate([replace(prompt, drafts=texts) for prompt in isolated], "isolated")
    return found


@contextmanager
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """The rows and tokens of each forward pass."""
    found: list[tuple[int, int]] = []
    plain = CausalLM.each

    def counted(lm: CausalLM, readings: Sequence[Any]) -> Any:
        found.extend(tuple(one.ids.shape) for one in readings)
        return plain(lm, readings)

    with monkeypatch.context() as patch:
        patch.setattr(CausalLM, "each", counted)
        yield found


def drafting(model: LocalModel, monkeypatch: pytest.MonkeyPatch, *drafts: Sequence[int]) -> None:
    """Have all drafts mean these tokens."""
    monkeypatch.setattr(model._encoder, "answers", lambda texts, end="": [tuple(map(tuple, drafts))] * len(texts))


def said(model: LocalModel, passages: Sequence[str] = PASSAGES, prompts: Sequence[Prompt] = ()) -> list[list[int]]:
    """The tokens of each reply, by plain steps."""
    seen: list[Any] = []
    isolated = [PROMPTS.isolated.render(context=text, query=QUERY) for text in passages]
    model._generate(prompts or isolated, "isolated", seen.append)
    return [list(row) for row in torch.stack(seen, 1).argmax(-1).tolist()]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_replies_are_those_of_plain_steps_whatever_the_drafts_say(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(tiny_model(architecture))
    plain, rows = replies(model), said(model)
    for drafts in (
        rows,
        [row[: LENGTH // 2] for row in rows],
        [[*row[:3], 9, 9, *row[3:]] for row in rows],
        [[row[0], 9] for row in rows],
        rows[:1],
        [[9, 8, 7]],
        [[], [5], rows[0] * 20],
    ):
        drafting(model, monkeypatch, *drafts)
        assert replies(model, "a draft") == plain


@pytest.mark.parametrize("architecture", [a for a in ARCHITECTURES if a != "gemma2"])
def test_drafts_that_hold_take_one_pass_behind_the_prompts(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = local(tiny_model(architecture))
    plain, rows = replies(model), said(model)
    model._codec._ends = frozenset({row[4] for row in rows})  # all replies are over by their fifth token
    wanted = replies(model)
    assert wanted != plain
    drafting(model, monkeypatch, *rows)
    replies(model, "a draft")  # the first with drafts measures their noise
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == wanted
    behind = [tokens for rows, tokens in taken if rows == len(PASSAGES)]
    assert len(behind) == 1
    assert behind[0] > 1


def test_one_reply_that_no_draft_has_to_its_end_takes_all_rows_through_plain_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, plain = said(local()), replies(local())
    for drafts in (rows[:-1], [*rows[:-1], rows[-1][:2]]):
        model = local()
        drafting(model, monkeypatch, *drafts)
        replies(model, "a draft")
        with passes(monkeypatch) as taken:
            assert replies(model, "a draft") == plain
        assert taken.count((len(PASSAGES), 1)) == LENGTH - 1


def test_a_pass_has_a_bounded_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits are computed for all of them."""
    model = local()
    passages = PASSAGES * 40
    plain, rows = replies(model, passages=passages), said(model)
    model._codec._ends = frozenset(row[-1] for row in rows)
    wanted = replies(model, passages=passages)
    assert wanted != plain
    drafting(model, monkeypatch, *rows)
    replies(model, "a draft", passages=passages)
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft", passages=passages) == wanted
    assert max(rows * tokens for rows, tokens in taken if rows > 1) <= 256
    few = local(prefill_tokens=4)
    drafting(few, monkeypatch, *rows)
    few._codec._ends = model._codec._ends
    replies(few, "a draft")
    with passes(monkeypatch) as taken:
        assert [r.text for r in replies(few, "a draft")] == [r.text for r in wanted[:3]]
    assert max(tokens for _, tokens in taken) <= max(4, LENGTH - 1)


def test_rows_behind_a_long_prefix_that_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompts = local(), prompts_for("short_answer", exemplars=True)
    isolated = [prompts.isolated.render(context=text, query=QUERY) for text in PASSAGES]
    seen: list[Any] = []
    model._generate(isolated, "isolated", seen.append)
    rows = torch.stack(seen, 1).argmax(-1).tolist()
    model._codec._ends = frozenset(row[-1] for row in rows)
    wanted = replies(model, prompts=prompts)
    drafting(model, monkeypatch, *rows)
    replies(model, "a draft", prompts=prompts)
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft", prompts=prompts) == wanted
    assert taken.count((len(PASSAGES), 1)) == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_pass_of_one_token_for_one_row(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library has the heads of a lone token stand in place of tokens."""
    model = local(tiny_model(architecture), prefill_tokens=1)
    rows = said(model)
    model._codec._ends = frozenset(row[1] for row in rows)
    plain = replies(model)
    drafting(model, monkeypatch, *(row[:1] for row in rows))
    replies(model, "a draft")
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    assert architecture == "gemma2" or taken.count((len(PASSAGES), 1)) == 0


def alike(rows: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Drafts of two tokens, more for each first token than a row of a pass holds."""
    return [(first, other) for first in dict.fromkeys(row[0] for row in rows) for other in range(5, 30)]


def test_a_passage_that_takes_all_the_room_leaves_enough_for_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is given out in parts of 32 columns: here no column is left over."""
    prompt, long = PROMPTS.isolated.render(context="", query=QUERY), "It stands on Sorra. " * 90
    frame = local()._encoder.frame_length(prompt)
    model = local(max_new_tokens=3, max_context_tokens=32 * 20 - frame - 3)
    plain = replies(model, passages=[*PASSAGES, long])
    assert plain[-1].truncated
    drafting(model, monkeypatch, *alike(said(model, [*PASSAGES, long])))
    assert replies(model, "a draft", passages=[*PASSAGES, long]) == plain


@pytest.mark.parametrize("architecture", ["gpt2", "phi3"])
def test_no_token_of_a_pass_stands_behind_the_window(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does has no place, or has some position encodings turn all rows by other angles."""
    others = {"gpt2": {}, "phi3": {"rope_scaling": LONG_ROPE, "original_max_position_embeddings": 256}}[architecture]
    window = {"gpt2": 256, "phi3": 1024}[architecture]
    model = local(tiny_model(architecture, window=window, **others), max_new_tokens=3)
    passages = [*PASSAGES, "It stands on Sorra. " * 90]
    assert model._lm.window == 256
    plain = replies(model, passages=passages)
    rows = said(model, passages)
    drafting(model, monkeypatch, *alike(rows[:1]), *(row[:1] for row in rows))  # of very different sizes
    each, furthest = CausalLM.each, []

    def noted(lm: CausalLM, readings: Sequence[Any]) -> Any:
        furthest.extend(int(one.positions.max()) for one in readings)
        return each(lm, readings)

    monkeypatch.setattr(CausalLM, "each", noted)
    assert replies(model, "a draft", passages=passages) == plain
    assert max(furthest) < model._lm.window
    assert max(model._reader.rows_noise.values) < 2**-15  # drafts were read


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_that_begin_otherwise_than_most_do_not_see_their_prefix(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, others = local(tiny_model(architecture)), prompts_for("short_answer", exemplars=True)
    drafting(model, monkeypatch, *said(model))
    replies(model, "a draft")  # measures their noise
    asked = [t.isolated.render(context=text, query=QUERY) for t in (others, others, PROMPTS) for text in PASSAGES]
    rows = said(model, prompts=asked)
    model._codec._ends = frozenset(row[4] for row in rows)
    plain = model.generate(asked, "isolated")
    drafting(model, monkeypatch, *rows)
    monkeypatch.setattr(type(model._reader.rows_drafts), "is_due", lambda self: True)  # whatever came of earlier ones
    with passes(monkeypatch) as taken:
        assert model.generate([replace(prompt, drafts=("a draft",)) for prompt in asked], "isolated") == plain
    if architecture not in ("gemma2", "qwen3"):  # of these some token leads by too little
        assert [(rows, columns) for rows, columns in taken if rows >= len(asked) and columns == 1] == []
        assert any(columns > 1 and rows >= len(asked) for rows, columns in taken)


@given(st.lists(st.text(alphabet="abTomas Brevik\n.é", max_size=30), max_size=4))
@settings(max_examples=10, deadline=None)
def test_hostile_drafts_change_nothing(texts: list[str]) -> None:
    model = local()
    assert replies(model, *texts) == replies(model)


def test_a_token_without_a_clear_lead_takes_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    plain, rows = replies(model), said(model)
    drafting(model, monkeypatch, *rows)
    monkeypatch.setattr(greedy, "lead_needed", lambda noise: 1e9)  # nothing is clear
    replies(model, "a draft")
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    assert taken.count((len(PASSAGES), 1)) == LENGTH - 1


def test_noise_is_measured_on_the_model_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output rows that cancel to all but noise: the kernel decides between twins, so no draft is used."""
    network = tiny_model("llama")
    model = local(network)
    assert model.why_not_shared is None  # as seen on a stand-in, before the weights change
    let_logits_cancel(network)
    plain = replies(model)
    drafting(model, monkeypatch, *said(model))
    assert replies(model, "a draft") == plain


def test_a_model_that_cannot_be_read_in_such_a_pass_takes_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    plain = replies(model)
    drafting(model, monkeypatch, *said(model))

    def refuses(*args: Any) -> Any:
        raise RuntimeError("not such a mask")

    monkeypatch.setattr(drafted_rows.SharedBatch, "drafted", refuses)
    assert replies(model, "a draft") == plain
    assert model._reader.rows_noise.values == [float("inf")]


@ELSEWHERE
def test_elsewhere_plain_steps_are_taken(
    architecture: str, dtype: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local(tiny_model(architecture, dtype=dtype), **settings)
    plain = replies(model)
    drafting(model, monkeypatch, *said(local(tiny_model(architecture, dtype=dtype))))
    assert replies(model, "a draft") == plain
    assert model._reader.rows_noise.values == []


QUESTIONS = load_dataset("demo", task="qa", top_k=10, limit=12).questions


def test_short_replies_are_looked_up_in_their_own_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel.bundled()
    steps = 0
    for question in QUESTIONS:
        prompts = [PROMPTS.isolated.render(context=p.text, query=question.question) for p in question.passages]
        plain = model.generate(prompts, "isolated")
        drafted = [replace(prompt, drafts=SHORT_DRAFTS) for prompt in prompts]
        with passes(monkeypatch) as taken:
            assert model.generate(drafted, "isolated") == plain
        steps += taken.count((len(prompts), 1))
    assert steps <= 4 * 5  # of some 5 for each question, those that measure the noise included


@pytest.mark.parametrize("method", [KeywordAggregation, ConsensusAggregation])
def test_methods_of_short_answers_say_that_groups_may_abstain(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Prompt] = []
    generate = LocalModel.generate

    def noted(self: LocalModel, prompts: Any, role: Any) -> list[Response]:
        asked.extend(prompt for prompt in prompts if role == "isolated")
        return generate(self, prompts, role)

    monkeypatch.setattr(LocalModel, "generate", noted)
    defense, question = method(LocalModel.bundled(), group_by="passage"), QUESTIONS[0]
    found = defense.answer(question.question, question.passages)
    assert {prompt.drafts for prompt in asked} == {SHORT_DRAFTS}
    monkeypatch.setattr(greedy, "answered", lambda *args: False)
    again = method(LocalModel.bundled(), group_by="passage").answer(question.question, question.passages)
    assert (again.text, again.radius, again.groups) == (found.text, found.radius, found.groups)


def test_a_question_after_one_whose_drafts_were_of_no_use_takes_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    rows = said(model)
    drafting(model, monkeypatch, *([row[0], 9, 9] for row in rows))
    plain = replies(model, "a draft")
    with passes(monkeypatch) as taken:
        assert replies(model, "a draft") == plain
    assert [tokens for rows, tokens in taken if rows > 1] == [1] * (LENGTH - 1)


def test_voting_names_the_options_as_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    generate = LocalModel.generate

    def noted(self: LocalModel, prompts: Any, role: Any) -> list[Response]:
        asked.extend(prompts)
        return generate(self, prompts, role)

    monkeypatch.setattr(LocalModel, "generate", noted)
    defense = MajorityVoting(LocalModel.bundled(), group_by="passage")
    found = defense.answer(QUERY, PASSAGES, choices=["Tomas Brevik", "Ilse Quant"])
    assert {prompt.drafts for prompt in asked} == {("Tomas Brevik", "Ilse Quant", NO_INFORMATION)}
    monkeypatch.setattr(greedy, "answered", lambda *args: False)
    assert defense.answer(QUERY, PASSAGES, choices=["Tomas Brevik", "Ilse Quant"]).groups == found.groups
