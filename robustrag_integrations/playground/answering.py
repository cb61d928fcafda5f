"""Answers to a state, one of vanilla RAG and one of the chosen method, and the chosen method's certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES, Method, entry_of
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.metrics import holds_answer
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.playground.state import State, StateError
from robustrag_integrations.prompts import Task

MOST_CALLS = 300
MOST_CORRUPTED = 10
MODES = ("injection", "modification")


def check_askable(state: State) -> None:
    """Raise StateError if a question or passages are missing."""
    if not state.question.strip():
        raise StateError("the question is empty; ask something")
    if not any(row.text.strip() for row in state.rows):
        raise StateError("there are no passages; add one, or start again with the example")


def task_of(state: State, method: Method) -> Task:
    """Return the task: a choice where there are options and the method takes them.

    Raises:
        StateError: the method needs options, and there are none.
    """
    if state.choices and method.takes_choices:
        return "multiple_choice"
    open_ended: Sequence[Task] = [task for task in method.tasks if task != "multiple_choice"]
    if not open_ended:
        raise StateError(f"{method.name} votes on options: write two or more, one per line")
    return next((task for task in open_ended if task == state.task), open_ended[0])


def defense_of(state: State, model: TextModel) -> Defense:
    """Return the defence that a state asks for.

    Raises:
        StateError: the model does not give what it needs, an extra is missing, or settings do not go together.
    """
    method = entry_of(state.method)
    if method.needs_probabilities and not isinstance(model, DecodingModel):
        raise StateError(f"{method.name} needs token probabilities, which {model.description} does not give")
    rules = {} if method.name in BASELINES else {"group_by": state.group_by}
    try:
        made: Defense = method.build(model, task=task_of(state, method), **rules, **state.settings)
    except (ValueError, TypeError, ImportError) as error:
        raise StateError(str(error)) from error
    return made


def undefended(state: State, model: TextModel) -> Defense:
    """Return vanilla RAG for the same question."""
    made: Defense = VANILLA.build(model, task=task_of(state, entry_of(state.method)))
    return made


def choices_of(state: State) -> tuple[str, ...] | None:
    """Return the options, where they are what is answered."""
    return state.choices if task_of(state, entry_of(state.method)) == "multiple_choice" else None


def verdict(state: State, answer: RobustAnswer) -> dict[str, Any]:
    """Judge the answer by the right one and the attacker's, where these are known: a kind for colours, and words."""
    right = bool(state.answer.strip()) and holds_answer(answer.text, [state.answer])
    wanted = bool(state.target.strip()) and holds_answer(answer.text, [state.target])
    if right and wanted:
        return {"kind": "both", "words": "the right answer and the attacker’s"}
    if wanted:
        return {"kind": "hijacked", "words": "the attacker’s answer"}
    if answer.abstained:
        return {"kind": "abstained", "words": "no answer"}
    if right:
        return {"kind": "right", "words": "the right answer"}
    return {"kind": "other", "words": "another answer" if state.answer.strip() else "not judged: no right answer given"}


async def certified(state: State, model: TextModel, asked: Mapping[str, Any]) -> Certification:
    """Return the chosen method's certificate for the passages that are not marked as planted.

    Args:
        state: the page.
        model: the model to ask.
        asked: `corruption_size` and `attack`.

    Raises:
        StateError: this cannot be certified, such as a model that samples or votes per source.
    """
    if state.method in BASELINES:
        raise StateError(f"{state.method} has no certificate: any passage may decide its answer; choose a defence")
    if not state.answer.strip():
        raise StateError("the right answer is empty; a certificate says how much of it survives")
    size = asked.get("corruption_size")
    if not is_whole_number(size, 0, MOST_CORRUPTED):
        raise StateError(f"corruption_size must be a whole number from 0 to {MOST_CORRUPTED}")
    if asked.get("attack") not in MODES:
        raise StateError(f"attack must be one of {', '.join(MODES)}")
    try:
        found: Certification = await defense_of(state, model).acertify(
            state.question,
            state.benign[: state.top_k],
            state.answer,
            corruption_size=size,
            attack=asked["attack"],
            choices=choices_of(state),
            top_k=state.top_k,
            max_model_calls=MOST_CALLS,
        )
    except (ValueError, TypeError) as error:
        raise StateError(str(error)) from error
    return found
