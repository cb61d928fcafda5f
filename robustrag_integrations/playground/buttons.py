"""The page's buttons: each takes a request's JSON and yields events while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from robustrag_integrations.answers.answer import STATUSES, ask_report
from robustrag_integrations.attacks import ATTACKS, Attack, planted_texts
from robustrag_integrations.drawing.answer import answer_parts, groups_legend, groups_strip
from robustrag_integrations.drawing.certificate import certificate_parts
from robustrag_integrations.drawing.elements import h, to_data
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.playground.answering import (
    certified,
    check_askable,
    choices_of,
    defense_of,
    undefended,
    verdict,
)
from robustrag_integrations.playground.models import Models
from robustrag_integrations.playground.state import LONGEST_PASSAGE, MOST_PASSAGES, Row, State, StateError, state_of

Event = dict[str, Any]


class Buttons:
    """The actions of the buttons.

    Args:
        models: the models that may be asked.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    async def answer(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield both answers, each as soon as it is there, drawn with its groups, its counts or its trace."""
        state = state_of(asked.get("state"))
        check_askable(state)
        if not self._models.is_loaded(state.model):
            yield {"says": "Loading the model"}
        model = await self._models.load(state.model)
        passages = state.passages[: state.top_k]
        shown = [
            {"id": p.id, "source": p.source, "text": p.text, "planted": row.planted}
            for p, row in zip(passages, state.rows, strict=False)
        ]
        for name, defense in (("vanilla", undefended(state, model)), ("defended", defense_of(state, model))):
            found = await defense.aanswer(state.question, passages, choices=choices_of(state))
            report = found.to_dict()
            groups = h("div", groups_strip(report, shown), groups_legend(STATUSES), cls="strip-line")
            yield {
                "part": name,
                "text": found.text,
                "radius": found.radius,
                "groups": len(found.groups),
                "verdict": verdict(state, found),
                "evidence": to_data(h("div", groups, *answer_parts(report, shown))),
                "report": ask_report(model.description, found, passages) if name == "defended" else None,
            }

    async def poison(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the state with an `attack` planted at a `rank`."""
        state, attack, rank = state_of(asked.get("state")), attack_named(asked.get("attack")), asked.get("rank", 1)
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise StateError("rank must be a whole number from 1, the top")
        yield {"state": planted(state, attack, rank).as_dict()}

    async def certificate(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the certificate for the passages that nobody planted, with the evidence that proves it."""
        state = state_of(asked.get("state"))
        check_askable(state)
        found = await certified(state, await self._models.load(state.model), asked)
        yield {"evidence": to_data(h("div", *certificate_parts(found.to_dict())))}


def attacks() -> tuple[Attack, ...]:
    """Return the attacks that can be planted: those whose texts do not depend on the defence."""
    return tuple(attack for attack in ATTACKS.values() if attack.write is not None)


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
    if len(state.rows) >= MOST_PASSAGES:
        raise StateError(f"there is room for {MOST_PASSAGES} passages; remove one first")
    try:
        texts = planted_texts(attack.name, _question(state), state.benign)
    except (ValueError, TypeError, IndexError) as error:
        raise StateError(str(error)) from error
    more = sum(row.planted for row in state.rows)
    taken = {row.source for row in state.rows}
    source = next(name for n in range(1, MOST_PASSAGES + 2) if (name := f"planted-{n}.example") not in taken)
    row = Row(texts[more % len(texts)][:LONGEST_PASSAGE], source, planted=True)
    at = max(rank, 1) - 1
    return replace(state, rows=(*state.rows[:at], row, *state.rows[at:]))


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
