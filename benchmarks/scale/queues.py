"""Questions that queue for the places of a gateway: some minutes of the busiest hour, simulated event by event."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from benchmarks.scale.world import Scene


@dataclass(frozen=True)
class Queued:
    """What the simulation saw; times in median calls.

    Attributes:
        load: of the places, how much is in use on average.
        places: how many calls may be under way.
        p50, p99: of a question, from its arrival to its answer.
        longest: how many calls waited at most.
    """

    load: float
    places: int
    p50: float
    p99: float
    longest: int


@dataclass
class _Question:
    arrived: float
    needed: int  # replies of this round that are still missing
    final: bool  # whether a final call is to come
    flying: set[int] = field(default_factory=set)  # numbers of its calls under way


class _Gateway:
    """Places for calls, and those that wait for one: first come, first served, but final calls first."""

    def __init__(self, places: int, scene: Scene, drawn: random.Random) -> None:
        self._free, self._scene, self._drawn = places, scene, drawn
        self._waiting: deque[_Question] = deque()
        self._replies: list[tuple[float, int, _Question]] = []
        self._sent = 0
        self.longest = 0

    @property
    def next_reply(self) -> float:
        """When the next reply is in; never where no call is under way."""
        return self._replies[0][0] if self._replies else math.inf

    def ask(self, now: float, question: _Question, calls: int) -> None:
        """So many calls of a question come in. Its final call goes to the front, as its question has waited longest."""
        if calls == 1:
            self._waiting.appendleft(question)
        else:
            self._waiting.extend([question] * calls)
        self._send(now)

    def reply(self) -> tuple[float, _Question | None]:
        """Take the next reply in: when, and the question whose round is complete by it."""
        now, number, question = heapq.heappop(self._replies)
        if number not in question.flying:
            return now, None  # cancelled
        question.flying.remove(number)
        question.needed -= 1
        self._free += 1
        if question.needed:
            self._send(now)
            return now, None
        self._free += len(question.flying)
        question.flying.clear()
        self._send(now)
        return now, question

    def _send(self, now: float) -> None:
        while self._free and self._waiting:
            question = self._waiting.popleft()
            if question.needed:  # else it was decided meanwhile, and its call does not go out
                self._free -= 1
                self._sent += 1
                question.flying.add(self._sent)
                heapq.heappush(self._replies, (now + self._scene.latency(self._drawn), self._sent, question))
        self.longest = max(self.longest, len(self._waiting))


def queued(
    rate: float, groups: int, needed: Sequence[int], *, final: bool, load: float, questions: int, scene: Scene
) -> Queued:
    """Questions arrive at random and send their calls; a call waits until a place is free.

    Args:
        rate: questions per median call time.
        groups: calls of the first round, at least 2.
        needed: after how many of these replies a question is decided, drawn for each; the others are cancelled.
        final: whether one more call follows.
        load: which share of the places is in use on average.
        questions: how many.
        scene: how long calls take.
    """
    drawn = random.Random(1)
    places = max(1, round(rate * _mean_work(groups, needed, final, scene) / load))
    gateway = _Gateway(places, scene, drawn)
    arrival, left, took = drawn.expovariate(rate), questions, []
    while left or gateway.next_reply < math.inf:
        if left and arrival <= gateway.next_reply:
            gateway.ask(arrival, _Question(arrival, drawn.choice(needed), final), groups)
            left, arrival = left - 1, arrival + drawn.expovariate(rate)
            continue
        now, done = gateway.reply()
        if done is not None and done.final:
            gateway.ask(now, _Question(done.arrived, 1, final=False), 1)
        elif done is not None:
            took.append(now - done.arrived)
    cuts = quantiles(took, n=100, method="inclusive")
    return Queued(load, places, cuts[49], cuts[98], gateway.longest)


def _mean_work(groups: int, needed: Sequence[int], final: bool, scene: Scene, rounds: int = 4000) -> float:
    """Call time that a question takes of the places on average, in median calls."""
    drawn, total = random.Random(2), 0.0
    for _ in range(rounds):
        times = sorted(scene.latency(drawn) for _ in range(groups))
        end = times[drawn.choice(needed) - 1]
        total += sum(min(t, end) for t in times) + (scene.latency(drawn) if final else 0.0)
    return total / rounds
