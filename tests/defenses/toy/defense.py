"""The front door of unanimity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.plans.asking import Quorum, ask_groups, read_response, report
from robustrag_integrations.plans.requests import Emit, Plan
from robustrag_integrations.prompts import ABSTENTION, PromptSet, Task, chosen_prompts
from tests.defenses.toy import UNANIMITY, UnanimityOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class UnanimitySettings:
    """Everything that decides a unanimous answer apart from the model."""

    prompts: PromptSet
    at_least: int

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[UnanimityOptions]
    ) -> UnanimitySettings:
        return cls(chosen_prompts(prompts, UNANIMITY.check_task(task)), **UNANIMITY.checked(options))

    def as_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least}


class Unanimity(TextDefense):
    method = UNANIMITY
    settings_type = UnanimitySettings
    settings: UnanimitySettings
    promise = Promise("the answer of this run")

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
            defense=UNANIMITY.name,
            groups=tuple(report(g, r.response) for g, r in zip(inputs.groups, readings, strict=True)),
            warnings=inputs.caveats,
            settings=settings.as_dict(),
            model_calls=len(inputs.groups),
        )


def _answer_in(text: str) -> str | None:
    return None if is_abstention(text) else text
