"""Vanilla RAG: one prompt with all passages. No defence, but a baseline on the same models and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.registry import VANILLA, Method
from robustrag_integrations.defenses.settings import ChoiceSettings
from robustrag_integrations.defenses.voting.options import parse_option, shown_options
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import Response, TextModel
from robustrag_integrations.plans.asking import PlanInput, ask_final, report
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Emit, Steps
from robustrag_integrations.replies.reading import CutReplies
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.prompts import (
    ABSTENTION,
    PromptSet,
    PromptTemplate,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import VanillaOptions


def vanilla_plan(inputs: PlanInput, settings: VanillaSettings) -> Steps[Draft]:
    """Ask once, with everything in one prompt. The radius is 0: any passage may decide the answer."""
    source = in_one_prompt(inputs.sources)
    if source.is_empty:
        return Draft(inputs.answer(None, sources=(report(source, status="supports"),) if source.passages else ()))
    template, values = settings.prompts.isolated, {"context": source.text, "query": inputs.query}
    text, choice, said = yield from ask_once(template, values, settings.prompts, inputs.choices, settings.cut_replies)
    sources = (report(source, said, status="supports"),)
    answer = inputs.answer(text, abstained=is_abstention(text), sources=sources, choice=choice)
    return Draft(answer, truncated=[said.truncated], final=said)


def in_one_prompt(sources: Sequence[Source], index: int = 0) -> Source:
    """Return all passages of these sources as one source."""
    passages, ranks = tuple(p for g in sources for p in g.passages), tuple(r for g in sources for r in g.ranks)
    return Source(index, passages, ranks=ranks)


def ask_once(
    template: PromptTemplate,
    values: Mapping[str, str],
    prompts: PromptSet,
    choices: Sequence[str] | None,
    cut_replies: CutReplies,
) -> Steps[tuple[str, int | None, Response]]:
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


@dataclass(frozen=True, kw_only=True)
class VanillaSettings(ChoiceSettings):
    """Everything that decides vanilla RAG apart from the model."""

    method: ClassVar[Method] = VANILLA

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"task": self.task, "options": self.options, "cut_replies": self.cut_replies}


class VanillaRAG(TextDefense):
    """Retrieval-augmented generation without a defence: one prompt with all passages, radius 0.

    Args:
        model: the model to ask.
        task: `short_answer` (default), `multiple_choice` (then give `choices`) or `long_form`.
        prompts: your own `PromptSet`; None for the project's, the same as the defences use.
        options: the settings of the method:
    """

    isolates = False
    settings_type = VanillaSettings
    settings: VanillaSettings

    def __init__(self, model: TextModel, **given: Unpack[VanillaOptions]) -> None:
        VANILLA.check_names(given, ("task", "prompts"))
        super().__init__(model, group_by="passage", **given)

    plan_of = staticmethod(vanilla_plan)
