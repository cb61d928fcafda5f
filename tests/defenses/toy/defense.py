"""A fourth method, as small as one can be: the answer that every answering source gave word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from robustrag_integrations._util.settings import setting
from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.registry import Method
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.plans.asking import PlanInput, ask_sources, read_response
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.text.abstention import is_abstention

UNANIMITY = Method(
    name="toy",
    summary="the answer that all sources give word for word",
    tasks=("short_answer",),
    needs="text",
    front_door=f"{__name__}:Unanimity",
)


@dataclass(frozen=True, kw_only=True)
class UnanimitySettings(MethodSettings):
    """Everything that decides a unanimous answer apart from the model."""

    method: ClassVar[Method] = UNANIMITY

    at_least: int = setting(2, "how many sources must answer", least=1, threshold=True)

    def as_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least}


class Unanimity(TextDefense):
    settings_type = UnanimitySettings
    settings: UnanimitySettings
    promise = Promise("the answer of this run")

    @staticmethod
    def plan_of(inputs: PlanInput, settings: UnanimitySettings) -> Steps[Draft]:
        prompts = [settings.prompts.isolated.render(context=g.text, query=inputs.query) for g in inputs.sources]
        heard = yield from ask_sources(inputs, prompts, lambda response: read_response(response, _answer_in))
        said = [found for found in heard.found if found is not None]
        text = said[0] if len(set(said)) == 1 and len(said) >= settings.at_least else None
        sources = heard.reports(lambda found: {"status": "supports" if found == text else "differs", "words": (found,)})
        return Draft(inputs.answer(text, sources=sources), heard)


def _answer_in(text: str) -> str | None:
    return None if is_abstention(text) else text
