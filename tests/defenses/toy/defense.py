"""A fourth method, as small as one can be: the answer that every answering group gave word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import Quorum, ask_groups, read_response, report
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION, PromptSet, Task, prompts_for


@dataclass(frozen=True)
class UnanimitySettings:
    """What decides a unanimous answer apart from the model."""

    prompts: PromptSet
    at_least: int

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, at_least: int | None = None
    ) -> UnanimitySettings:
        if at_least is not None and at_least < 1:
            raise ValueError(f"at_least={at_least} must be 1 or more")
        return cls(prompts or prompts_for(task or "short_answer"), at_least or 2)

    def as_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least}


class Unanimity(TextDefense):
    settings_type = UnanimitySettings
    settings: UnanimitySettings
    promise = Promise("the answer of this run")

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        at_least: int | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(model, **rules)
        self.settings = UnanimitySettings.of(task=task, prompts=prompts, at_least=at_least)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: UnanimitySettings) -> Plan:
        refuse_choices(inputs.choices, Unanimity)
        prompts = [settings.prompts.isolated.render(context=g.text, query=inputs.query) for g in inputs.groups]
        readings = yield from ask_groups(inputs.groups, prompts, Quorum(), lambda r: read_response(r, _answer_in))
        said = [r.found for r in readings if r.found is not None]
        text = said[0] if len(set(said)) == 1 and len(said) >= settings.at_least else ABSTENTION
        yield Emit(text)
        return RobustAnswer(
            text=text,
            radius=0,
            abstained=is_abstention(text),
            query=inputs.query,
            defense="toy",
            groups=tuple(report(g, r.response) for g, r in zip(inputs.groups, readings, strict=True)),
            warnings=inputs.caveats,
            settings=settings.as_dict(),
            model_calls=len(inputs.groups),
        )


def _answer_in(text: str) -> str | None:
    return None if is_abstention(text) else text
