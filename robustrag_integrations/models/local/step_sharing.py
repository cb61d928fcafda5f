"""Decoding steps that several questions share: continuous batching within one process.

Nobody waits for a batch to fill up, and there is no thread of its own: of the threads that want to take a step, one
takes it for all that wait, first come first served, and then the next. Questions join and leave between two steps. A
question's prompts are read in a batch of its own, before it joins.

How many rows may be in flight is bounded, and with it their memory: further questions wait until others are through,
in the order in which they came. A session that somebody holds without using it keeps nobody waiting.
"""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate

import torch

from robustrag_integrations.forks import lock_held_over_forks, renew_in_children
from robustrag_integrations.models.local.alone import Alone
from robustrag_integrations.models.local.batch import Batch, Opened
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.joint import step_together
from robustrag_integrations.models.local.own_reading import tolerance
from robustrag_integrations.models.local.packing import Stem
from robustrag_integrations.models.local.remembered import Remembered
from robustrag_integrations.models.local.shared import SharedBatch
from robustrag_integrations.models.local.step_shapes import StepShapes, find_step_shapes

Steppable = SharedBatch | Alone

_PATIENCE = 0.5  # of the last step: so long the next one waits for those that took part
_REST = 1.0  # seconds after which a batch that does nothing keeps no other one waiting


@dataclass(eq=False)
class _Place:
    """A batch's share of the rows in flight.

    Attributes:
        rows: how many; 0 for copies, which are not counted.
        at_work: how many of its calls are under way.
        used: when the last one ended.
    """

    rows: int
    at_work: int = 0
    used: float = 0.0

    def rests_in(self, now: float) -> float:
        """Seconds until it keeps nobody waiting any more; infinite while it works, 0 once it rests."""
        return float("inf") if self.at_work else max(0.0, self.used + _REST - now)


@dataclass(eq=False)
class _Request:
    """A batch that waits for its step."""

    batch: Steppable
    tokens: Sequence[int]
    place: _Place
    logits: torch.Tensor | None = None
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.logits is not None or self.error is not None


@dataclass
class _State:
    """What is protected by the lock."""

    places: set[_Place] = field(default_factory=set)
    queue: deque[object] = field(default_factory=deque)  # who waits for a place, first come first
    waiting: list[_Request] = field(default_factory=list)  # who waits for a step, first come first
    stepping: bool = False
    last: set[_Place] = field(default_factory=set)  # who took part in the last step
    seconds: float = 0.0  # that it took


class StepSharing:
    """The shared decoding steps of one model.

    Args:
        lm: the model.
        most: rows in flight, and of one step.

    Attributes:
        taken: how many steps were taken, by the number of batches in them.
    """

    def __init__(self, lm: CausalLM, most: int) -> None:
        self._lm, self._most = lm, most
        self._shapes = Remembered[StepShapes](lm)
        self._start()
        renew_in_children(self, StepSharing._start)

    def _start(self) -> None:
        """With nobody in it; a child process has none of the threads that were."""
        self._state = _State()
        self._changed = threading.Condition(lock_held_over_forks())
        self.taken: dict[int, int] = {}

    def _shapes_for(self, batch: Steppable, tokens: Sequence[int]) -> StepShapes:
        """In which numbers of rows steps are taken; found out on the first batch, before its first step."""

        def find() -> StepShapes:
            found = find_step_shapes(self._lm, self._most)
            if found.why_not is None and not _as_by_itself(self._lm, batch, tokens, found):
                found = StepShapes(why_not="a shared step gave other logits than a step of its own")
            if found.why_not is not None:
                warnings.warn(f"rows_at_once={self._most}: {found.in_words()}", RuntimeWarning, stacklevel=2)
            return found

        return self._shapes.get(self._most, find)

    def in_words(self) -> str:
        """What was found out so far, for certificates."""
        found = self._shapes.values
        return found[-1].in_words() if found else "not probed: no question was decoded yet"

    @property
    def why_not(self) -> str | None:
        """Why steps are not shared, as far as it was found out; None if they are."""
        found = self._shapes.values
        return found[-1].why_not if found else None

    def forget(self) -> None:
        """Drop what was found out."""
        self._shapes.clear()

    @contextmanager
    def room_for(self, rows: int) -> Iterator[Callable[[Batch], Batch]]:
        """Wait for room for so many rows; gives a function that has a batch take its steps with others.

        The room is free again once that batch is no longer used, or at the end of the block if there is none.
        """
        place = self._admit(rows)
        batches: list[Batch] = []

        def join(batch: Batch) -> Batch:
            if not isinstance(batch, (SharedBatch, Alone)):
                return batch
            batches.append(Joined(batch, self, place))
            return batches[0]

        try:
            yield join
        finally:
            self._end(place)
            if not batches:
                self.leave(place)

    def _admit(self, rows: int) -> _Place:
        ticket, place = object(), _Place(rows, at_work=1)
        with self._changed:
            self._state.queue.append(ticket)
            try:
                while True:
                    wait = self._wait_for(rows) if self._state.queue[0] is ticket else float("inf")
                    if wait <= 0:
                        break
                    self._changed.wait(None if wait == float("inf") else wait)
            finally:
                self._state.queue.remove(ticket)
                self._changed.notify_all()
            self._state.places.add(place)
        return place

    def _wait_for(self, rows: int) -> float:
        """Seconds until there may be room: 0 if there is, infinite if somebody has to leave."""
        now = time.monotonic()
        rest = sorted((place.rests_in(now), place.rows) for place in list(self._state.places))
        left = sum(rows for seconds, rows in rest if seconds)
        for seconds, leaving in [(0.0, 0), *((s, r) for s, r in rest if s)]:
            left -= leaving
            if left + rows <= self._most or not left:
                return seconds
        return float("inf")

    def enter(self, place: _Place) -> None:
        """A copy of a batch."""
        with self._changed:
            self._state.places.add(place)

    def leave(self, place: _Place) -> None:
        """A batch is no longer used."""
        with self._changed:
            self._state.places.discard(place)
            self._state.last.discard(place)
            self._changed.notify_all()

    def _begin(self, place: _Place) -> None:
        with self._changed:
            place.at_work += 1

    def _end(self, place: _Place) -> None:
        with self._changed:
            place.at_work -= 1
            place.used = time.monotonic()
            if self._state.queue:
                self._changed.notify_all()  # it will rest soon

    @contextmanager
    def at_work(self, place: _Place) -> Iterator[None]:
        """A block in which the batch of this place is in use."""
        self._begin(place)
        try:
            yield
        finally:
            self._end(place)

    def steps(self, wanted: Sequence[tuple[Steppable, Sequence[int]]], place: _Place) -> list[torch.Tensor]:
        """Append a token to each row of some batches.

        Args:
            wanted: different batches of one question, each with a token per row.
            place: the question's.

        Returns:
            Per batch [rows, V] float32 logits of the token after it.
        """
        shapes = self._shapes_for(*wanted[0])
        if any(shapes.of(batch.step_rows) is None for batch, _ in wanted):
            return [batch.append(tokens) for batch, tokens in wanted]
        requests, state = [_Request(batch, tokens, place) for batch, tokens in wanted], self._state

        def done() -> bool:
            return all(request.done for request in requests)

        try:
            with self._changed:
                state.waiting.extend(requests)
                self._changed.notify_all()
            while not done():
                with self._changed:
                    self._changed.wait_for(lambda: done() or not state.stepping)
                    if done():
                        break
                    state.stepping = True
                self._lead(requests, shapes)
        finally:
            with self._changed:
                state.waiting = [request for request in state.waiting if request not in requests]
        for request in requests:
            if request.error is not None:
                raise request.error
        return [request.logits for request in requests if request.logits is not None]

    def _lead(self, mine: Sequence[_Request], shapes: StepShapes) -> None:
        """Take the next step for all that wait, once those of the last one are here, or a moment has passed."""
        state, taken, began = self._state, list[_Request](), time.monotonic()
        try:
            with self._changed:
                self._changed.wait_for(lambda: len(state.waiting) >= len(state.last), state.seconds * _PATIENCE)
                taken = _first_in_line(state.waiting, shapes)
                state.waiting = state.waiting[len(taken) :]
            began = time.monotonic()
            self._take(taken, shapes)
        finally:
            with self._changed:
                left = [r for r in taken if not r.done and r not in mine]  # this thread was interrupted
                state.waiting = [*left, *state.waiting]
                state.stepping, state.seconds = False, time.monotonic() - began
                state.last = {request.place for request in taken} & state.places
                self.taken[len(taken)] = self.taken.get(len(taken), 0) + 1
                self._changed.notify_all()

    def _take(self, requests: Sequence[_Request], shapes: StepShapes) -> None:
        """Take a step for all of them. If it breaks off, each takes one of its own, so that only one is harmed."""
        try:
            self._pass(requests, shapes)
        except Exception:
            for request in requests:
                self._take_alone(request, shapes)

    def _take_alone(self, request: _Request, shapes: StepShapes) -> None:
        try:
            self._pass([request], shapes)
        except Exception as error:
            request.error = error

    def _pass(self, requests: Sequence[_Request], shapes: StepShapes) -> None:
        steps = [request.batch.step(request.tokens) for request in requests]
        rows = shapes.of(sum(step.rows for step in steps))
        if rows is None:
            raise RuntimeError(f"a step of {sum(step.rows for step in steps)} rows fits into none of {shapes.rows}")
        try:
            logits = step_together(self._lm, steps, rows)
        except BaseException:
            for request in requests:
                request.batch.step_broke_off()
            raise
        for request, found in zip(requests, logits, strict=True):
            request.batch.stepped()
            request.logits = found[: request.batch.rows]


def _first_in_line(waiting: Sequence[_Request], shapes: StepShapes) -> list[_Request]:
    """As many as fit into one step, in the order in which they came."""
    rows = accumulate(request.batch.step_rows for request in waiting)
    return [request for request, so_far in zip(waiting, rows, strict=True) if shapes.of(so_far)]


def _as_by_itself(lm: CausalLM, batch: Steppable, tokens: Sequence[int], shapes: StepShapes) -> bool:
    """Whether a shared step of a batch gives the logits of a step that it takes by itself, but for float noise."""
    rows = shapes.of(batch.step_rows)
    if rows is None:
        return True
    [got] = step_together(lm, [batch.fork().step(tokens)], rows)
    wanted = batch.fork().append(tokens)
    gap = float((got[: batch.rows] - wanted).abs().max())
    return gap <= tolerance(lm.dtype) * float(wanted.max() - wanted.min())


@contextmanager
def room_for(sharing: StepSharing | None, rows: int) -> Iterator[Callable[[Batch], Batch]]:
    """`sharing.room_for`, where steps are shared; elsewhere every batch stays as it is."""
    if sharing is None:
        yield lambda batch: batch
        return
    with sharing.room_for(rows) as join:
        yield join


class Joined:
    """A batch that takes its decoding steps together with those of other questions.

    Args:
        batch: the rows.
        sharing: takes the steps.
        place: its share of the rows in flight; given back once this is no longer used.
    """

    def __init__(self, batch: Steppable, sharing: StepSharing, place: _Place) -> None:
        self._batch, self._sharing, self._place = batch, sharing, place
        self.rows = batch.rows
        weakref.finalize(self, sharing.leave, place).atexit = False

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Opened:
        """Read the prompts, and score strings that may follow, given as tokens."""
        with self._sharing.at_work(self._place):
            return self._batch.open(strings)

    def append(self, tokens: Sequence[int]) -> torch.Tensor:
        """Append a token to each row; [rows, V] float32 logits of the one after it."""
        with self._sharing.at_work(self._place):
            [logits] = self._sharing.steps([(self._batch, tokens)], self._place)
        return logits

    def append_to_forks(self, forks: Sequence[Joined], tokens: Sequence[int]) -> list[torch.Tensor]:
        """Append a token to each of these copies, in as few steps as can be, with the bits of `append`."""
        wanted = [(fork._batch, [token] * fork.rows) for fork, token in zip(forks, tokens, strict=True)]
        with self._sharing.at_work(self._place):
            return self._sharing.steps(wanted, self._place)

    def fork(self) -> Joined:
        """A copy that can be advanced on its own, with the same numbers to the bit."""
        place = _Place(0)
        self._sharing.enter(place)
        return Joined(self._batch.fork(), self._sharing, place)

    def cached(self) -> Iterator[torch.Tensor]:
        """Everything that is kept of what was read."""
        return self._batch.cached()

    def stem(self) -> Stem | None:
        """What a tree of continuations can grow on."""
        return self._batch.stem()
