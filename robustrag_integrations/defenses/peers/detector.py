"""Drop the passages in which a function of the user's finds an injection, and read the rest together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robustrag_integrations.defenses.base import PlanInput
from robustrag_integrations.defenses.peers.door import Baseline, options_of
from robustrag_integrations.defenses.peers.functions import probability
from robustrag_integrations.defenses.peers.rereading import reread
from robustrag_integrations.defenses.peers.settings import DetectorSettings
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import PromptSet, Task
from robustrag_integrations.replies.reading import CutReplies

_ENOUGH = 0.5  # a score from which on a passage is dropped


class InjectionDetector(Baseline):
    """Vanilla RAG over the passages that an injection detector lets through, a baseline without a guarantee.

    Args:
        model: what is asked.
        task: `short_answer` (default), `multiple_choice` or `long_form`.
        prompts: your own `PromptSet`; None for the project's.
        cut_replies: what a reply does that was cut: `"abstain"` (default) or `"count"`.
        detector: a function from a passage's text to True, False or a score in [0, 1], of which 0.5 is enough; or its
            name, `module:function`. None searches for a few phrases (`phrases.speaks_to_the_reader`), those of this
            project's attacks among them.
    """

    settings_type = DetectorSettings
    settings: DetectorSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        detector: Callable[..., Any] | str | None = None,
    ) -> None:
        super().__init__(model)
        self.settings = DetectorSettings.of(task=task, prompts=prompts, cut_replies=cut_replies, detector=detector)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: DetectorSettings) -> Plan:
        """One prompt with the passages that the detector lets through."""
        choices = options_of(inputs, settings, InjectionDetector)
        scores = [probability("detector", settings.detector(group.text)) for group in inputs.groups]
        kept = [i for i, score in enumerate(scores) if score < _ENOUGH]
        return reread(inputs, settings, choices, kept, defense="detector", evidence={"scores": scores})
