"""Plants an attack of the library in a state's passages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.attacks import ATTACKS, Attack, plan_attack, planted_texts
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.playground.answering import choices_of
from robustrag_integrations.playground.state import LONGEST_PASSAGE, MOST_PASSAGES, Row, State, StateError

_TRIES = 12  # retrievals that the adaptive attacker tries


def attacks() -> tuple[Attack, ...]:
    """Return the attacks that can be planted."""
    return tuple(attack for attack in ATTACKS.values() if attack.write is not None or attack.needs_defense)


def attack_named(name: object) -> Attack:
    """Return the attack of this name, of those that ship or are installed.

    Raises:
        StateError: there is none.
    """
    found = next((attack for attack in attacks() if attack.name == name), None)
    if found is None:
        raise StateError(f"attack {name!r:.60} is unknown; use one of {', '.join(a.name for a in attacks())}")
    return found


def planted(state: State, attack: Attack, rank: int) -> State:
    """Return the state with a passage of this attack at this rank (1 for the top), from a source of its own.

    Raises:
        StateError: there is no room, or the attack needs what the state lacks.
    """
    texts = _written(state, attack)
    more = sum(row.planted for row in state.rows)
    row = Row(texts[more % len(texts)][:LONGEST_PASSAGE], _free_source(state), planted=True)
    at = max(rank, 1) - 1
    return _with_rows(state, [*state.rows[:at], row, *state.rows[at:]])


async def searched(state: State, attack: Attack, defense: Defense) -> State:
    """Return the state with the best text of an attacker who tries texts on the defence; cancelling it ends the search.

    Raises:
        StateError: the attack needs what the state lacks.
    """
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(_search, state, attack, _stoppable(defense, stopped))
    finally:
        stopped.set()


def _search(state: State, attack: Attack, defense: Defense) -> State:
    try:
        found = plan_attack(
            attack.name,
            _question(state),
            state.benign[: state.top_k],
            top_k=state.top_k,
            defense=defense,
            choices=choices_of(state),
            tries=_TRIES,
        )
    except (ValueError, TypeError) as error:
        raise StateError(f"{attack.name}: {error}") from error
    rows = [row for row in state.rows if not row.planted]
    for place, (passage, is_planted) in enumerate(zip(found.passages, found.planted, strict=True)):
        if is_planted:
            rows.insert(place, Row(passage.text[:LONGEST_PASSAGE], passage.source or "", planted=True))
    return _with_rows(state, rows)


class _StoppedError(BaseException):
    """The search was cancelled. (The search counts an `Exception` as an answer that failed.)"""


def _stoppable(defense: Defense, stopped: threading.Event) -> Defense:
    """Return the defence, with answers that end the search once it is stopped."""
    answer = defense.answer

    def ask(*question: Any, **options: Any) -> RobustAnswer:
        if stopped.is_set():
            raise _StoppedError
        return answer(*question, **options)

    defense.answer = ask  # type: ignore[method-assign]  # this object's alone, made for this search
    return defense


def _written(state: State, attack: Attack) -> tuple[str, ...]:
    try:
        return planted_texts(attack.name, _question(state), state.benign)
    except (ValueError, TypeError, IndexError) as error:
        raise StateError(f"{attack.name}: {error}") from error


def _question(state: State) -> EvalQuestion:
    """Return the state as a question for attacks.

    Raises:
        StateError: it does not say what is asked, what is right, or what the attacker wants.
    """
    needed = {"question": state.question, "right answer": state.answer, "attacker’s answer": state.target}
    for name, text in needed.items():
        if not text.strip():
            raise StateError(f"the {name} is empty; attacks are written about it")
    return EvalQuestion("", state.question, (state.answer,), state.target, state.benign, state.choices)


def _free_source(state: State) -> str:
    taken = {row.source for row in state.rows}
    return next(name for n in range(1, MOST_PASSAGES + 2) if (name := f"planted-{n}.example") not in taken)


def _with_rows(state: State, rows: Sequence[Row]) -> State:
    if len(rows) > MOST_PASSAGES:
        raise StateError(f"there is room for {MOST_PASSAGES} passages; remove one first")
    return replace(state, rows=tuple(rows))
