"""Certificates of a state: the worst case of the defence's answer, before any attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import BASELINES
from robustrag_integrations.playground.answering import choices_of
from robustrag_integrations.playground.state import State, StateError

MOST_CALLS = 300
MOST_CORRUPTED = 10
MODES = ("injection", "modification")


def check_certifiable(state: State, asked: Mapping[str, Any]) -> None:
    """Raise StateError if there is nothing to certify, or the attacker is invalid.

    Args:
        state: the page.
        asked: `corruption_size` and `attack`.
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


async def certified(state: State, defense: Defense, asked: Mapping[str, Any]) -> Certification:
    """Return the certificate for the passages that are not marked as planted.

    Raises:
        StateError: this cannot be certified, such as a model that samples or votes per source.
    """
    check_certifiable(state, asked)
    try:
        found: Certification = await defense.acertify(
            state.question,
            state.benign[: state.top_k],
            state.answer,
            corruption_size=asked["corruption_size"],
            attack=asked["attack"],
            choices=choices_of(state),
            top_k=state.top_k,
            max_model_calls=MOST_CALLS,
        )
    except (ValueError, TypeError) as error:
        raise StateError(str(error)) from error
    return found
