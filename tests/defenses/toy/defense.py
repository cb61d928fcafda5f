"""The front door of unanimity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.defenses.base import TextDefense, refuse_choices
from robustrag_integrations.plans.asking import PlanInput, ask_groups, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.prompts import PromptSet, Task, chosen_prompts
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
    def plan_of(inputs: PlanInput, settings: UnanimitySettings) -> Steps[Draft]:
        refuse_choices(inputs.choices, Unanimity)
        prompts = [settings.prompts.isolated.render(context=g.text, query=inputs.query) for g in inputs.groups]
        heard = yield from ask_groups(inputs, prompts, lambda response: read_response(response, _answer_in))
        said = [found for found in heard.found if found is not None]
        text = said[0] if len(set(said)) == 1 and len(said) >= settings.at_least else None
        groups = heard.reports(lambda found: {"status": "supports" if found == text else "differs", "words": (found,)})
        return Draft(inputs.answer(text, groups=groups), heard)


def _answer_in(text: str) -> str | None:
    return None if is_abstention(text) else text
