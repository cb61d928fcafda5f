"""The page's buttons: each takes a request's JSON and yields events while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.ask_report import SCHEMA as REPORT
from robustrag_integrations.answers.ask_report import ask_report
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.playground.answering import answered, check_askable, defense_of, undefended, verdict
from robustrag_integrations.playground.certificates import certified, check_certifiable
from robustrag_integrations.playground.links import link_of, state_of_link
from robustrag_integrations.playground.models import Models
from robustrag_integrations.playground.parts import certificate_of, evidence_of, listed
from robustrag_integrations.playground.poisoning import attack_named, planted, searched
from robustrag_integrations.playground.state import SAVED, State, StateError, state_of, state_of_report
from robustrag_integrations.playground.what_it_takes import Ask, most_copies, tries

Event = dict[str, Any]

VANILLA, DEFENDED = "vanilla", "defended"


class Buttons:
    """The actions of the buttons.

    Args:
        models: what may be asked.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    async def open(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the state in a `link`, or in a `file`: a state, or a report of `robustrag ask --json`."""
        if "link" in asked:
            state = state_of_link(asked["link"])
        else:
            found = asked.get("file")
            if not isinstance(found, dict):
                raise StateError("the file holds no JSON object")
            state = state_of_report(found) if found.get("schema") == REPORT else state_of(found)
        yield {"state": state.as_dict()}

    async def answer(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield both answers, each as soon as it is there, and the link to this state."""
        state = _state(asked)
        yield {"link": link_of(state)}
        check_askable(state)
        if not self._models.is_loaded(state.model):
            yield {"says": "Loading the model"}
        model = await self._models.load(state.model)
        defenses = {VANILLA: undefended(state, model), DEFENDED: defense_of(state, model)}
        passages = state.passages[: state.top_k]
        shown = listed(passages, [row.planted for row in state.rows[: state.top_k]])
        for name, defense in defenses.items():
            found = await answered(state, defense, passages)
            yield {
                "part": name,
                "text": found.text,
                "radius": found.radius,
                "groups": len(found.groups),
                "verdict": verdict(state, found),
                "evidence": evidence_of(found, shown),
                "report": _saved(state, model, found, passages) if name == DEFENDED else None,
            }

    async def poison(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the state with an `attack` planted at a `rank`."""
        state, attack, rank = _state(asked), attack_named(asked.get("attack")), asked.get("rank", 1)
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise StateError("rank must be a whole number from 1, the top")
        if attack.needs_defense:
            check_askable(state)
            yield {"says": "The attacker is trying texts on the defence"}
            model = await self._models.load(state.model)
            state = await searched(state, attack, defense_of(state, model))
        else:
            state = planted(state, attack, rank)
        yield {"state": state.as_dict()}

    async def takes(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Find how many copies of the planted passage change each answer, try by try."""
        state = _state(asked)
        check_askable(state)
        model = await self._models.load(state.model)
        asks = {VANILLA: _asker(state, undefended(state, model)), DEFENDED: _asker(state, defense_of(state, model))}
        async for tried in tries(state, asks):
            yield {
                "defense": tried.defense,
                "copies": tried.copies,
                "most": most_copies(state),
                "text": tried.text,
                "changed": tried.changed,
            }

    async def certificate(self, asked: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Yield the certificate for the passages that nobody planted."""
        state = _state(asked)
        check_askable(state)
        check_certifiable(state, asked)
        model = await self._models.load(state.model)
        yield {"evidence": certificate_of(await certified(state, defense_of(state, model), asked))}


def _state(asked: Mapping[str, Any]) -> State:
    found = asked.get("state")
    if not isinstance(found, dict):
        raise StateError("state must be an object")
    return state_of(found)


def _saved(state: State, model: TextModel, answer: RobustAnswer, passages: Sequence[Passage]) -> Event:
    return {**ask_report(model.description, answer, passages), SAVED: state.as_dict()}


def _asker(state: State, defense: Defense) -> Ask:
    async def ask(passages: Sequence[Passage]) -> str:
        return (await answered(state, defense, passages)).text

    return ask
