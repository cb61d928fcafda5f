"""Rounds of remote decoding, several tokens per request next to one, on a simulated server with a fixed wait.

Ten groups; seven know an answer of eight tokens, the others and the question alone say something else at every second
token. Every round of requests takes one wait, however many requests it has.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target
from robustrag_integrations import DecodingAggregation
from robustrag_integrations.models.base import DecodingModel, DecodingSession
from robustrag_integrations.models.server.continuations import Continuation
from robustrag_integrations.models.server.session import RemoteSession, Wanted
from robustrag_integrations.models.server.token_lists import TokenList
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.usage import Usage

_WAIT = 0.02  # seconds of a round
_TOKENS = 32  # of the vocabulary
_LENGTH = 8  # tokens of the answer
_GROUPS, _KNOWING = 10, 7
_END = 0


def ratios(bench: Bench) -> list[Ratio]:
    """Wall time, whatever the bench's clock: waiting is what is simulated."""
    runs = []
    for seed in range(4 * bench.repeats):
        runs.append((_run(seed, 1), _run(seed, 12)))
        print(f"  world {seed + 1} of {4 * bench.repeats}", file=sys.stderr, flush=True)
    target: dict[str, Target] = {"cpu": (">=", 3.0), "cuda": (">=", 3.0)}
    note = f"{_GROUPS} groups, answers of {_LENGTH} tokens"
    return [
        Ratio("remote decoding: rounds one by one / several at once", _over(runs, "rounds"), target, note),
        Ratio("remote decoding: seconds one by one / several at once", _over(runs, "seconds"), {}, note),
        Ratio("remote decoding: requests one by one / several at once", _over(runs, "requests"), {}, note),
        Ratio("remote decoding: tokens written, several at once / one by one", _over(runs, "tokens", 1, 0), {}, note),
    ]


def _over(runs: Sequence[tuple[dict[str, float], ...]], name: str, one: int = 0, other: int = 1) -> tuple[float, ...]:
    return tuple(run[one][name] / run[other][name] for run in runs)


def _run(seed: int, speculate: int) -> dict[str, float]:
    model = _Simulated(seed, speculate)
    start = time.perf_counter()
    answer = DecodingAggregation(model).answer("Who?", [f"passage {n}" for n in range(_GROUPS)])
    seconds = time.perf_counter() - start
    if answer.evidence["tokens"] != model.answer[:-1]:
        raise AssertionError(f"the answer is {answer.evidence['tokens']}, not {model.answer}")
    spent = answer.spending
    return {
        "rounds": spent.rounds,
        "seconds": seconds,
        "requests": spent.calls,
        "tokens": spent.total.completion or 0,
    }


class _Codec:
    size = _TOKENS

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(96 + token) for token in tokens if token)

    def is_end(self, token: int) -> bool:
        return token == _END


class _Simulated(DecodingModel):
    def __init__(self, seed: int, speculate: int) -> None:
        self._seed = seed
        drawn = random.Random(seed)
        self.answer = [*(drawn.randrange(4, 27) for _ in range(_LENGTH)), _END]
        self.speculate, self.top_logprobs, self.abstentions = speculate, _TOKENS, ((1, 2, 3),)
        self.drift: float | None = 0.0

    @property
    def codec(self) -> Any:
        return _Codec()

    def open_session(self, prompts: Sequence[Prompt], no_retrieval: Prompt, max_new_tokens: int) -> DecodingSession:
        rows = [(row,) for row in range(len(prompts) + 1)]
        return RemoteSession(self, rows, (False,) * len(prompts), max_new_tokens)

    def ask(self, wanted: Sequence[Wanted], count: int) -> list[Any]:
        time.sleep(_WAIT)
        return [self._reply(one) for one in wanted]

    def longer(self, count: int) -> int | None:
        return None

    def no_more_than(self, count: int) -> None:
        raise AssertionError("nothing is refused")

    def learn_dialect(self) -> list[str]:
        return []

    def saw_drift(self, drift: float) -> None:
        self.drift = drift

    def _reply(self, wanted: Wanted) -> Continuation:
        row, said = wanted.prompt[0], list(wanted.prompt[1:])
        lists, written = [], []
        while len(lists) < wanted.length and (not written or written[-1] != _END):
            best = self._says(row, [*said, *written])
            lists.append(TokenList({t: 0.9 if t == best else 0.1 / (_TOKENS - 1) for t in range(_TOKENS)}, 0.0))
            written.append(best)
        usage = Usage(prompt=len(wanted.prompt), completion=len(lists))
        return Continuation(tuple(lists), tuple(written) if wanted.length > 1 else (), (usage,))

    def _says(self, row: int, said: Sequence[int]) -> int:
        drawn = random.Random(f"{self._seed}/{row}/{said}")
        knows = row < _KNOWING or drawn.random() < 0.5
        follows = len(said) < len(self.answer) and list(said) == self.answer[: len(said)]
        return self.answer[len(said)] if knows and follows else drawn.randrange(4, 27)
