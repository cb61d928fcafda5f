"""Vanilla RAG: one prompt with all passages. No defence; here to compare with, on the same models and prompts."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.voting.defense import check_choices, parse_option
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


class VanillaRAG(TextDefense):
    """Retrieval-augmented generation without a defence: one prompt with all passages, radius 0.

    Args:
        model: what is asked.
        task: `short_answer`, `multiple_choice` (then give `choices`) or `long_form`.
        prompts: your own `PromptSet`; None for the project's, the same as the defences use.
    """

    def __init__(self, model: TextModel, *, task: Task = "short_answer", prompts: PromptSet | None = None) -> None:
        super().__init__(model)
        self.task = task
        self.prompts = prompts or prompts_for(task)

    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan:
        together = PassageGroup(0, tuple(p for g in groups for p in g.passages)) if groups else None
        options = None
        if self.task == "multiple_choice":
            options = check_choices(choices)
        else:
            self._refuse_choices(choices)
        return vanilla_plan(query, together, self.prompts, choices=options, model_warnings=self.model.warnings)
