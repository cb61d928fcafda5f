"""Vanilla RAG: one prompt with all passages. No defence; here to compare with, on the same models and prompts."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.defenses.registry import VANILLA
from robustrag_integrations.defenses.voting.options import check_choices, parse_option
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.passages import PassageGroup
from robustrag_integrations.plans.asking import ask_final, report, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request
from robustrag_integrations.prompts import (
    ABSTENTION,
    NO_INFORMATION,
    PromptSet,
    PromptTemplate,
    Task,
    format_choices,
    prompts_for,
)


def vanilla_plan(
    query: str,
    group: PassageGroup | None,
    prompts: PromptSet,
    *,
    choices: Sequence[str] | None = None,
    model_warnings: Sequence[str] = (),
) -> Plan:
    """Ask once, with everything in one prompt. The radius is 0: any passage may decide the answer."""
    calls, choice, text, said, cut = 0, None, ABSTENTION, None, False
    if group is None or group.is_empty:
        yield Emit(text)
    else:
        calls = 1
        template, values = prompts.isolated, {"context": group.text, "query": query}
        text, choice, said, cut = yield from ask_once(template, values, choices)
    return RobustAnswer(
        text=text,
        radius=0,
        abstained=is_abstention(text),
        query=query,
        defense="vanilla",
        groups=() if group is None else (report(group, status="supports", response=said, truncated=cut),),
        choice=choice,
        warnings=(*model_warnings, *truncation_warnings([cut])),
        model_calls=calls,
    )


def ask_once(
    template: PromptTemplate, values: Mapping[str, str], choices: Sequence[str] | None
) -> Generator[Request, Reply, tuple[str, int | None, str, bool]]:
    """Ask a single question, and show the answer: its text, the option chosen, the response, and whether it was cut."""
    if choices is not None:
        values = {**values, "choices": format_choices([*choices, NO_INFORMATION])}
    said, cut = yield from ask_final(template.render(**values), shown=choices is None)
    if choices is None:
        return said, None, said, cut
    choice = parse_option(said, choices)
    text = ABSTENTION if choice is None else choices[choice]
    yield Emit(text)
    return text, choice, said, cut


@dataclass(frozen=True)
class VanillaSettings:
    """What decides vanilla RAG apart from the model."""

    task: Task
    prompts: PromptSet

    @classmethod
    def of(cls, *, task: Task | None = None, prompts: PromptSet | None = None) -> VanillaSettings:
        """From user arguments; see `VanillaRAG`."""
        chosen = VANILLA.check_task(task)
        return cls(chosen, prompts or prompts_for(chosen))

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"task": self.task}


class VanillaRAG(TextDefense):
    """Retrieval-augmented generation without a defence: one prompt with all passages, radius 0.

    Args:
        model: what is asked.
        task: `short_answer` (default), `multiple_choice` (then give `choices`) or `long_form`.
        prompts: your own `PromptSet`; None for the project's, the same as the defences use.
    """

    settings_type = VanillaSettings
    settings: VanillaSettings

    def __init__(self, model: TextModel, *, task: Task | None = None, prompts: PromptSet | None = None) -> None:
        super().__init__(model)
        self.settings = VanillaSettings.of(task=task, prompts=prompts)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: VanillaSettings) -> Plan:
        """One prompt with all passages."""
        together = (
            PassageGroup(
                0,
                tuple(p for g in inputs.groups for p in g.passages),
                ranks=tuple(r for g in inputs.groups for r in g.ranks),
            )
            if inputs.groups
            else None
        )
        options = None
        if settings.task == "multiple_choice":
            options = check_choices(inputs.choices)
        else:
            refuse_choices(inputs.choices, VanillaRAG)
        return vanilla_plan(inputs.query, together, settings.prompts, choices=options, model_warnings=inputs.caveats)
