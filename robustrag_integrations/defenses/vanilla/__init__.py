"""Vanilla RAG: one prompt with all passages. No defence, but a baseline on the same models and prompts."""

from __future__ import annotations

from robustrag_integrations.defenses.registry import BASELINES, Method, register
from robustrag_integrations.defenses.shared_options import ChoiceOptions, CutReplyOptions


class VanillaOptions(ChoiceOptions, CutReplyOptions, total=False):
    """The settings of vanilla RAG."""


VANILLA = register(
    Method(
        name="vanilla",
        summary="no defence: one prompt with all passages, to compare with",
        tasks=("short_answer", "multiple_choice", "long_form", "list"),
        needs="text",
        defense="robustrag_integrations.defenses.vanilla.defense:VanillaRAG",
        options=VanillaOptions,
    ),
    BASELINES,
)
