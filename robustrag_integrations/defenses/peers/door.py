"""The front door that the baselines share: one passage, one vote; options where the task has them."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.defenses.base import Defense, PlanInput, TextDefense, refuse_choices
from robustrag_integrations.defenses.peers.settings import PeerSettings
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.models.base import TextModel


class Baseline(TextDefense):
    """A defence of another paper, to compare with. Its radius is 0."""

    def __init__(self, model: TextModel) -> None:
        super().__init__(model, group_by="passage")


def options_of(inputs: PlanInput, settings: PeerSettings, defense: type[Defense]) -> Sequence[str] | None:
    """The options of the question; None where the task has none.

    Raises:
        TypeError, ValueError: options that are missing or invalid, or that the task does not have.
    """
    if settings.task == "multiple_choice":
        return check_choices(inputs.choices)
    refuse_choices(inputs.choices, defense)
    return None
