"""Questions that are answered at the same time share decoding steps: the same numbers, in any company."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import DecodingAggregation, LocalModel  # noqa: E402
from robustrag_integrations.models.local import branching, session, step_shapes, step_sharing  # noqa: E402
from robustrag_integrations.models.local.causal_lm import CausalLM  # noqa: E402
from robustrag_integrations.models.local.step_shapes import find_step_shapes  # noqa: E402
from robustrag_integrations.prompts import Prompt, prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402
from tests.helpers.worlds import graded  # noqa: E402

PROMPTS = prompts_for("short_answer")
TOKENIZER = tiny_tokenizer()
PASSAGES = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra. " * 4]
QUESTIONS = [f"Who built the Halden Light number {i}?" + " Really?" * i for i in range(4)]
ROWS = 32


def local(network: Any = None, **changes: Any) -> LocalModel:
    settings = {"max_context_tokens": 96, "max_new_tokens": 6, "stop": (), "rows_at_once": ROWS, **changes}
    return LocalModel(network or tiny_model("llama"), TOKENIZER, **settings)


def isolated(query: str) -> list[Prompt]:
    return [PROMPTS.isolated.render(context=text, query=query) for text in PASSAGES]


def numbers(model: LocalModel, query: str) -> list[np.ndarray]:
    """Abstention scores and the distributions of some steps."""
    session = model.open_session(isolated(query), PROMPTS.no_retrieval.render(query=query), 6)
    steps = [session.opening.distributions, *(session.append(40 + i) for i in range(5))]
    return [session.opening.abstention, *(np.vstack([s.groups, s.no_retrieval]) for s in steps)]


def texts(model: LocalModel, query: str) -> list[str | None]:
    alone = PROMPTS.no_retrieval.render(query=query)
    return [r.text for r in (*model.generate(isolated(query), "isolated"), *model.generate([alone], "final"))]


def all_at_once(ask: Callable[[str], Any], questions: Sequence[str] = QUESTIONS) -> list[Any]:
    with ThreadPoolExecutor(len(questions)) as threads:
        return list(threads.map(ask, questions))


def shared_steps(model: LocalModel) -> int:
    """How many steps had more than one question."""
    assert model._sharing is not None
    return sum(times for batches, times in model._sharing.taken.items() if batches > 1)


@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3", "gpt2"])
def test_a_question_has_the_same_bits_alone_and_in_company(architecture: str) -> None:
    network = tiny_model(architecture)
    model = local(network)
    alone = [(numbers(model, q), texts(model, q)) for q in QUESTIONS]
    assert model.why_steps_not_shared is None
    assert shared_steps(model) == 0
    together = all_at_once(lambda q: (numbers(model, q), texts(model, q)))
    assert shared_steps(model) > 0
    for (rows, said), (others, heard) in zip(alone, together, strict=True):
        assert said == heard
        assert all(map(np.array_equal, rows, others))
    usual = local(network, rows_at_once=None)
    for query, (rows, said) in zip(QUESTIONS[:2], alone, strict=False):
        assert texts(usual, query) == said
        for ours, theirs in zip(rows, numbers(usual, query), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_half_precision_has_the_same_bits_in_company() -> None:
    model = local(tiny_model("llama", dtype=torch.bfloat16))
    alone = [numbers(model, q) for q in QUESTIONS]
    # Where no shape is exact, nothing is shared, and the bits are the same for that reason.
    for rows, others in zip(alone, all_at_once(lambda q: numbers(model, q)), strict=True):
        assert all(map(np.array_equal, rows, others))


def test_an_answer_and_its_certificate_are_those_of_a_model_that_shares_nothing() -> None:
    network = tiny_model("llama")
    usual, sharing = (DecodingAggregation(local(network, rows_at_once=n), max_new_tokens=4) for n in (None, ROWS))

    def ask(query: str) -> tuple[str, int]:
        answer = sharing.answer(query, PASSAGES)
        return answer.text, answer.radius

    plain = [usual.answer(q, PASSAGES) for q in QUESTIONS]
    assert all_at_once(ask) == [(a.text, a.radius) for a in plain]
    ours, theirs = (
        d.certify(QUESTIONS[0], PASSAGES, plain[0].text or "x", corruption_size=1) for d in (sharing, usual)
    )
    assert (ours.tau, ours.certified) == (theirs.tau, theirs.certified)
    assert "with the same bits in each" in sharing.model.numerics["decoding_steps"]


def test_questions_on_one_event_loop_share_steps() -> None:
    model = local()
    defense = DecodingAggregation(model, max_new_tokens=6)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(defense.aanswer(q, PASSAGES) for q in QUESTIONS))

    together = asyncio.run(ask())
    assert shared_steps(model) > 0
    assert [a.text for a in together] == [defense.answer(q, PASSAGES).text for q in QUESTIONS]


def test_cancelling_a_question_frees_its_rows_and_leaves_the_others_alone() -> None:
    model = local(max_new_tokens=40, rows_at_once=8)

    async def ask() -> list[Any]:
        asked = [asyncio.create_task(model.agenerate(isolated(q), "isolated")) for q in QUESTIONS[:4]]
        await asyncio.sleep(0.05)
        asked[0].cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    gone, *others = asyncio.run(ask())
    assert isinstance(gone, asyncio.CancelledError)
    said = [[r.text for r in replies] for replies in others]
    assert said == [[r.text for r in model.generate(isolated(q), "isolated")] for q in QUESTIONS[1:4]]
    gc.collect()
    assert model._sharing is not None
    assert not model._sharing._state.places


def test_a_question_that_came_while_another_one_read_does_not_wait_for_its_session_to_go() -> None:
    model = local(rows_at_once=4)
    numbers(model, QUESTIONS[1])  # what is probed once
    reading, go_on = threading.Event(), threading.Event()

    def hold(module: Any, args: Any) -> None:
        reading.set()
        go_on.wait(30)

    with ThreadPoolExecutor(2) as threads:
        hook = model._model.register_forward_pre_hook(hold)
        first = threads.submit(model.open_session, isolated(QUESTIONS[0]), isolated(QUESTIONS[0])[0], 6)
        assert reading.wait(30)
        second = threads.submit(model.generate, isolated(QUESTIONS[1]), "isolated")
        time.sleep(0.1)  # it waits for room by now
        hook.remove()
        go_on.set()
        held = first.result(30)
        try:
            assert len(second.result(10)) == len(PASSAGES)
        finally:
            del held, first  # so that the other thread ends in any case


def test_a_step_that_breaks_off_is_repeated_question_by_question(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    expected = [numbers(model, q) for q in QUESTIONS]
    take = step_sharing.step_together
    broken: list[int] = []

    def breaking(lm: CausalLM, steps: Sequence[Any], rows: int) -> Any:
        if len(steps) > 1:
            broken.append(threading.get_ident())
            lm.model.model.layers[1].self_attn.register_forward_pre_hook(fail_once)
        return take(lm, steps, rows)

    def fail_once(module: Any, args: Any) -> None:
        if threading.get_ident() != broken[-1]:  # another question's prompts, read meanwhile
            return
        module._forward_pre_hooks.clear()
        raise RuntimeError("out of luck")

    monkeypatch.setattr(step_sharing, "step_together", breaking)
    for rows, others in zip(expected, all_at_once(lambda q: numbers(model, q)), strict=True):
        assert all(map(np.array_equal, rows, others))
    assert broken


def test_an_error_of_one_question_is_its_own() -> None:
    model = local()
    expected = numbers(model, QUESTIONS[0])
    query = QUESTIONS[1]
    harmed = model.open_session(isolated(query), PROMPTS.no_retrieval.render(query=query), 6)
    with ThreadPoolExecutor(2) as threads:
        other = threads.submit(numbers, model, QUESTIONS[0])
        with pytest.raises(IndexError):
            harmed.append(10**6)  # no such token
        assert all(map(np.array_equal, other.result(), expected))


def test_a_thread_that_is_interrupted_hands_the_step_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    expected = numbers(model, QUESTIONS[0])
    query = QUESTIONS[1]
    leader = model.open_session(isolated(query), PROMPTS.no_retrieval.render(query=query), 6)
    take, started = step_sharing.step_together, threading.Event()

    def interrupted(*args: Any) -> Any:
        if not started.is_set():
            started.set()
            time.sleep(0.1)
            raise KeyboardInterrupt
        return take(*args)

    monkeypatch.setattr(step_sharing, "step_together", interrupted)
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyboardInterrupt):
            leader.append(40)
        assert all(map(np.array_equal, threads.submit(numbers, model, QUESTIONS[0]).result(10), expected))


def test_further_questions_wait_for_room_in_the_order_in_which_they_came() -> None:
    sharing = step_sharing.StepSharing(CausalLM(tiny_model("llama")), 8)
    admitted: list[int] = []
    free = [threading.Event() for _ in range(4)]

    def take(number: int, rows: int) -> None:
        with sharing.room_for(rows):
            admitted.append(number)
            free[number].wait(10)

    threads = []
    for number, rows in enumerate([6, 6, 2, 2]):
        threads.append(threading.Thread(target=take, args=(number, rows)))
        threads[-1].start()
        time.sleep(0.05)
    assert admitted == [0]  # the third would fit, but the second came first
    free[0].set()
    time.sleep(0.2)
    assert admitted == [0, 1, 2]
    for event in free:
        event.set()
    for thread in threads:
        thread.join(10)
    assert admitted == [0, 1, 2, 3]
    assert not sharing._state.places


def test_a_session_that_nobody_uses_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_sharing, "_REST", 0.1)
    model = local(rows_at_once=4)
    held = [
        model.open_session(isolated(q), PROMPTS.no_retrieval.render(query=q), 6) for q in QUESTIONS[:3]
    ]  # twelve rows
    assert all(np.isfinite(session.append(40).groups).all() for session in held)


def test_a_question_with_more_rows_than_a_step_takes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local(rows_at_once=2)
    many = [PROMPTS.isolated.render(context=f"Passage {i}.", query=QUESTIONS[0]) for i in range(40)]
    replies = model.generate(many, "isolated")
    usual = local(rows_at_once=None).generate(many, "isolated")
    assert [r.text for r in replies] == [r.text for r in usual]


def test_where_rows_move_each_other_every_question_takes_its_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = step_shapes._bits
    calls: list[int] = []

    def moving(lm: CausalLM, tokens: Sequence[int], kinds: Sequence[int], sums: Any) -> Any:
        found = bits(lm, tokens, kinds, sums)
        calls.append(len(kinds))
        if len(calls) > 1 and len(kinds) == ROWS:
            found[3, 5] ^= 1
        return found

    monkeypatch.setattr(step_shapes, "_bits", moving)
    model = local()
    with pytest.warns(RuntimeWarning, match=r"rows_at_once=32: not shared .* rows of a step of 32 move each other"):
        together = all_at_once(lambda q: texts(model, q))
    assert "move each other" in (model.why_steps_not_shared or "")
    assert "not shared between questions" in model.numerics["decoding_steps"]
    usual = local(rows_at_once=None)
    assert together == [texts(usual, q) for q in QUESTIONS]
    assert shared_steps(model) == 0


def test_numbers_of_rows_with_other_bits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = step_shapes._bits

    def other_below_16(lm: CausalLM, tokens: Sequence[int], kinds: Sequence[int], sums: Any) -> Any:
        found = bits(lm, tokens, kinds, sums)
        return found ^ 1 if len(kinds) < 16 else found

    monkeypatch.setattr(step_shapes, "_bits", other_below_16)
    found = find_step_shapes(CausalLM(tiny_model("llama")), 100)
    assert found.rows[0] >= 16
    assert found.rows[-1] == 128
    assert found.of(17) == 32
    assert found.of(129) is None


def test_an_attention_of_another_kind_is_not_shared() -> None:
    model = local(tiny_model("gemma2"))
    with pytest.warns(RuntimeWarning, match="scaled_dot_product_attention"):
        said = texts(model, QUESTIONS[0])
    assert said == texts(local(tiny_model("gemma2"), rows_at_once=None), QUESTIONS[0])


def test_rows_of_an_attacker_in_another_question_move_nothing() -> None:
    """The other users' questions and passages are hostile, and come and go while this one is answered."""
    model = local()
    expected = numbers(model, QUESTIONS[0])
    hostile = ["</s><s>" * 10, "Nonsense " * 30, "", "w"]
    over = threading.Event()

    def disturb(text: str) -> None:
        while not over.is_set():
            prompts = [PROMPTS.isolated.render(context=text, query=text[:20] or "?")] * 3
            model.generate(prompts, "isolated")

    with ThreadPoolExecutor(len(hostile)) as threads:
        running = [threads.submit(disturb, text) for text in hostile]
        for _ in range(5):
            assert all(map(np.array_equal, numbers(model, QUESTIONS[0]), expected))
        over.set()
        for future in running:
            future.result(20)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "16"])
def test_rows_at_once_is_a_number_of_rows(rows: Any) -> None:
    with pytest.raises(ValueError, match="rows_at_once"):
        local(rows_at_once=rows)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_half_precision_certifies_a_level_in_one_step_with_the_bits_of_one_prefix_at_a_time(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = tiny_model(architecture, dtype=torch.bfloat16)
    passages, passes = [f"Fact {i}: paris" for i in range(6)], list[int]()
    network.register_forward_pre_hook(
        lambda module, args, kwargs: passes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    defense = DecodingAggregation(local(network), max_new_tokens=5, stop=["zzz"])
    asked = {"etas": [1.0, 2.0, 3.0], "corruption_size": [1, 2], "metric": graded, "max_model_calls": 120}
    told, counts = [], []
    for tree in (session.LocalSession.tree, lambda self: None):
        monkeypatch.setattr(session.LocalSession, "tree", tree)
        defense.certify_etas("Where?", passages, "paris", **asked)  # what is tried out
        passes.clear()
        told.append(defense.certify_etas("Where?", passages, "paris", **asked))
        counts.append(len(passes))
    for eta in asked["etas"]:
        for one, other in zip(told[0][eta], told[1][eta], strict=True):
            assert one.responses == other.responses
            assert (one.tau, one.certified, one.model_calls) == (other.tau, other.certified, other.model_calls)
    numerics = told[0][1.0][0].numerics
    assert numerics["prefixes_packed"] >= 4
    assert numerics["noise_measured"] == 0.0
    assert counts[0] < counts[1]


def test_copies_of_a_session_take_their_steps_together() -> None:
    model = local()
    opened = model.open_session(isolated(QUESTIONS[0]), PROMPTS.no_retrieval.render(query=QUESTIONS[0]), 6)
    tree = branching.SteppedTree(opened._batch)
    first = tree.grow([(40,), (41,), (42,)])
    second = tree.grow([(40, 7), (42, 7), (42, 8), *((41, token) for token in range(50, 60))])
    assert model._sharing is not None
    assert max(model._sharing.taken) > 3
    for prefix, found in (((41,), first[1]), ((42, 8), second[2]), ((41, 59), second[-1])):
        one = opened.fork()
        for token in prefix:
            wanted = one.append(token)
        assert np.array_equal(found.groups, wanted.groups)
        assert np.array_equal(found.no_retrieval, wanted.no_retrieval)
