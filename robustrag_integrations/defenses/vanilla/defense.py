"""Vanilla RAG: one prompt with all passages. No defence, but a baseline on the same models and prompts."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.defenses.vanilla import VANILLA, VanillaOptions
from robustrag_integrations.defenses.voting.options import check_choices, parse_option, shown_options
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.plans.asking import ask_final, report, truncation_warnings
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request
from robustrag_integrations.prompts import (
    ABSTENTION,
    PromptSet,
    PromptTemplate,
    Task,
    chosen_prompts,
)
from robustrag_integrations.replies.reading import CutReplies

if TYPE_CHECKING:
    from typing_extensions import Unpack


def vanilla_plan(
    query: str,
    group: PassageGroup,
    prompts: PromptSet,
    *,
    choices: Sequence[str] | None = None,
    model_warnings: Sequence[str] = (),
    cut_replies: CutReplies = "abstain",
) -> Plan:
    """Ask once, with everything in one prompt. The radius is 0: any passage may decide the answer."""
    calls, choice, text, said = 0, None, ABSTENTION, Response(None)
    if group.is_empty:
        yield Emit(text)
    else:
        calls = 1
        template, values = prompts.isolated, {"context": group.text, "query": query}
        text, choice, said = yield from ask_once(template, values, prompts, choices, cut_replies)
    return RobustAnswer(
        text=text,
        radius=0,
        abstained=is_abstention(text),
        query=query,
        defense="vanilla",
        groups=(report(group, said, status="supports", error=None),) if group.passages else (),
        choice=choice,
        warnings=(*model_warnings, *truncation_warnings([said.truncated]), *filter(None, [said.note])),
        model_calls=calls,
        reasoning_chars=said.reasoning_chars,
    )


def in_one_prompt(groups: Sequence[PassageGroup], index: int = 0) -> PassageGroup:
    """Return all passages of these groups as one group."""
    passages, ranks = tuple(p for g in groups for p in g.passages), tuple(r for g in groups for r in g.ranks)
    return PassageGroup(index, passages, ranks=ranks)


def ask_once(
    template: PromptTemplate,
    values: Mapping[str, str],
    prompts: PromptSet,
    choices: Sequence[str] | None,
    cut_replies: CutReplies,
) -> Generator[Request, Reply, tuple[str, int | None, Response]]:
    """Ask a single question, and show the answer: its text, the option chosen, and the response."""
    if choices is not None:
        values = {**values, "choices": shown_options(choices, values.get("context", ""), prompts)}
    said = yield from ask_final(template.render(**values), cut_replies, shown=choices is None)
    if choices is None:
        return said.text or ABSTENTION, None, said
    choice = parse_option(said.text or "", choices)
    text = ABSTENTION if choice is None else choices[choice]
    yield Emit(text)
    return text, choice, said


@dataclass(frozen=True)
class VanillaSettings:
    """Everything that decides vanilla RAG apart from the model."""

    task: Task
    prompts: PromptSet
    cut_replies: CutReplies = "abstain"

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[VanillaOptions]
    ) -> VanillaSettings:
        """Build the settings from user arguments; None stands for the default."""
        chosen, given = VANILLA.check_task(task), VANILLA.checked(options)
        return cls(chosen, chosen_prompts(prompts, chosen, options.get("options")), given["cut_replies"])

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"task": self.task, "options": self.prompts.options, "cut_replies": self.cut_replies}


class VanillaRAG(TextDefense):
    """Retrieval-augmented generation without a defence: one prompt with all passages, radius 0.

    Args:
        model: the model to ask.
        task: `short_answer` (default), `multiple_choice` (then give `choices`) or `long_form`.
        prompts: your own `PromptSet`; None for the project's, the same as the defences use.
        options: the settings of the method:
    """

    method = VANILLA
    settings_type = VanillaSettings
    settings: VanillaSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        **options: Unpack[VanillaOptions],
    ) -> None:
        VANILLA.check_names(options)
        super().__init__(model, group_by="passage", task=task, prompts=prompts, **options)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: VanillaSettings) -> Plan:
        """Return the plan: one prompt with all passages."""
        together = in_one_prompt(inputs.groups)
        options = None
        if settings.task == "multiple_choice":
            options = check_choices(inputs.choices)
        else:
            refuse_choices(inputs.choices, VanillaRAG)
        return vanilla_plan(
            inputs.query,
            together,
            settings.prompts,
            choices=options,
            model_warnings=inputs.caveats,
            cut_replies=settings.cut_replies,
        )
