"""A question that nobody waits for any more stops between two prompts that are read, and leaves other questions be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.base import listening  # noqa: E402
from robustrag_integrations.plans.drivers import DecodingPerformer  # noqa: E402
from robustrag_integrations.plans.requests import OpenSession  # noqa: E402
from tests.models.local.moving import PROMPTS, QUERY, local  # noqa: E402
from tests.models.local.moving import isolated as prompts_of  # noqa: E402

ISOLATED = prompts_of([f"The light {i} was built by Tomas. " * 3 for i in range(6)])
NO_RETRIEVAL = PROMPTS.no_retrieval.render(query=QUERY)
A_STRING = 8  # tokens that are scored behind a prompt, at most; prompts are longer

Work = Callable[[LocalModel], Awaitable[Any]]


def numbers(model: LocalModel) -> np.ndarray:
    session = model.open_session(ISOLATED, NO_RETRIEVAL, 6)
    return np.vstack([session.opening.distributions.sources, session.append(40).sources])


async def isolated(model: LocalModel) -> Any:
    return await model.agenerate(ISOLATED, "isolated")


async def session(model: LocalModel) -> Any:
    return await DecodingPerformer(model).aperform(OpenSession(ISOLATED, NO_RETRIEVAL, 6))


@contextmanager
def passes_held_at(model: LocalModel, number: int) -> Iterator[tuple[threading.Event, threading.Event, list[int]]]:
    """Holds the pass over prompts of this number, from 1.

    Yields:
        Whether it has begun, what lets it go on, and how many tokens each pass so far had.
    """
    began, go_on = threading.Event(), threading.Event()
    passes: list[int] = []

    def hold(module: Any, args: Any, kwargs: Any) -> None:
        if kwargs["input_ids"].numel() <= A_STRING:
            return
        passes.append(kwargs["input_ids"].numel())
        if len(passes) == number:
            began.set()
            assert go_on.wait(30)

    hook = model._model.register_forward_pre_hook(hold, with_kwargs=True)
    try:
        yield began, go_on, passes
    finally:
        go_on.set()
        hook.remove()


def passes_after_cancelling(model: LocalModel, work: Work, at: int) -> list[int]:
    """How many tokens each forward pass had of work that is cancelled in the pass of this number."""
    with passes_held_at(model, at) as (began, go_on, passes):

        async def ask() -> None:
            asked = asyncio.create_task(work(model))
            assert await asyncio.to_thread(began.wait, 30)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            go_on.set()

        asyncio.run(ask())  # waits for the threads of the loop
    return passes


@pytest.mark.parametrize(
    ("work", "settings"), [(isolated, {}), (session, {"prefill_tokens": 100}), (session, {"share_prefixes": False})]
)
def test_cancelling_stops_between_two_prompts_and_the_model_goes_on_as_before(
    work: Work, settings: dict[str, Any]
) -> None:
    model = local(**settings)
    asyncio.run(work(model))  # what is probed once
    expected = numbers(model)
    for at in (1, 3):
        assert len(passes_after_cancelling(model, work, at)) == at
    assert np.array_equal(numbers(model), expected)


def test_a_long_prompt_that_is_read_in_parts_stops_between_two_of_them() -> None:
    model = local(prefill_tokens=16)

    async def ask(model: LocalModel) -> Any:
        return await model.agenerate([NO_RETRIEVAL], "final")

    asyncio.run(ask(model))
    model._reader.prefixes.clear()
    assert len(passes_after_cancelling(model, ask, 2)) == 2


def test_what_other_questions_need_as_well_is_measured_to_its_end() -> None:
    model = local()
    found = passes_after_cancelling(model, session, 1)  # examines how the model reads, the first time
    assert len(found) > 1
    assert model._reader._examined is not None
    assert model.why_not_shared is None
    passes_after_cancelling(model, session, 1)  # the isolation probe
    assert model._reader.probed
    assert np.array_equal(numbers(model), numbers(local()))


def test_whoever_waits_is_told_how_many_prompts_were_read() -> None:
    told: list[tuple[int, int]] = []
    with listening(lambda *read: told.append(read)):
        local().generate(ISOLATED, "isolated")
        local().generate(ISOLATED[:1], "trusted")
    assert told == [(n, 6) for n in range(1, 7)]
