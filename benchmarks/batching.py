"""Steps that are shared: tokens per second of several questions, and the levels of a certificate in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from benchmarks import certification
from benchmarks.inference import Bench, ratio_of
from benchmarks.results import Ratio
from benchmarks.timing import Case, Work, summary
from robustrag_integrations import LocalModel
from robustrag_integrations.models.base import DecodingSession

QUESTIONS = (1, 4, 16)
_WAYS = ("at once", "one after another")
_TOKENS = 5  # per question
_ROWS = 16  # of one question, at most: ten groups, the question alone, and padding


def ratios(bench: Bench) -> list[Ratio]:
    """Decoding steps alone: reading the prompts costs what it costs without company."""
    most = _ROWS * max(QUESTIONS)
    usual = bench.model()
    sharing = bench.model(rows_at_once=most)
    roots = [_session(bench, model) for model in (usual, sharing)]
    cases: dict[str, Case] = {}
    for count in QUESTIONS:
        copies: list[DecodingSession] = []
        cases[f"{count} one after another"] = Case(_in_turn(copies), _fork(roots[0], count, copies))
        together: list[DecodingSession] = []
        cases[f"{count} at once"] = Case(_at_once(together), _fork(roots[1], count, together))
    seconds = bench.time(cases)
    found = []
    for count in QUESTIONS:
        speeds = [count * _TOKENS / summary(seconds[f"{count} {how}"])["median"] for how in _WAYS]
        steps = sharing.numerics["decoding_steps"]
        note = f"{speeds[0]:.1f} against {speeds[1]:.1f} tokens of answers per second; {steps}"
        name = f"decoding steps: {count} question{'s' * (count > 1)} in turn / at once"
        found.append(ratio_of(seconds, name, f"{count} {_WAYS[1]}", f"{count} {_WAYS[0]}", note=note))
    if next(bench.network.parameters()).dtype != torch.float32:  # in which certificates need no shared steps
        found += certification.tree(bench, sharing, " in half precision")
    return found


def _session(bench: Bench, model: LocalModel) -> DecodingSession:
    scene, prompts = bench.scene, bench.scene.prompts()
    isolated = [prompts.isolated.render(context=p, query=scene.question()) for p in scene.passages()]
    return model.open_session(isolated, prompts.no_retrieval.render(query=scene.question()), bench.tokens)


def _fork(root: DecodingSession, count: int, copies: list[DecodingSession]) -> Work:
    """Puts fresh copies of a session into a list."""

    def work() -> None:
        copies.clear()
        copies.extend(copy for copy in (root.fork() for _ in range(count)) if copy is not None)

    return work


def _steps(session: DecodingSession) -> None:
    for step in range(_TOKENS):
        session.append(5 + step)


def _in_turn(sessions: Sequence[DecodingSession]) -> Work:
    return lambda: [_steps(session) for session in sessions]


def _at_once(sessions: Sequence[DecodingSession]) -> Work:
    def work() -> None:
        with ThreadPoolExecutor(len(sessions)) as threads:
            list(threads.map(_steps, sessions))

    return work
