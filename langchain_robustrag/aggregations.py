"""From a factory's keyword arguments to the core's settings and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast

from langchain_core.documents import Document
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from typing_extensions import TypedDict

from langchain_robustrag.prompts import as_langchain
from langchain_robustrag.questions import Question
from robustrag_integrations.defenses.decoding.plan import decoding_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.defenses.voting.plan import voting_plan
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.models.base import DecodingModel
from robustrag_integrations.passages import GroupBy, PassageGroup
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import NO_INFORMATION, PromptSet, Task, format_choices, prompts_for

Aggregation: TypeAlias = Literal["keyword", "decoding", "voting"]
Settings: TypeAlias = KeywordSettings | DecodingSettings | VotingSettings


class RobustOptions(TypedDict, total=False):
    """The keyword arguments of `create_robust_documents_chain`, which describes them; every factory here takes them."""

    aggregation: Aggregation
    group_by: GroupBy | None
    group_size: int
    task: Task
    alpha: float | Fraction
    beta: int
    extractor: KeywordExtractor
    min_words: int
    quorum: float
    gamma: float
    eta: float
    max_new_tokens: int
    stop: Sequence[str]
    choices: Sequence[str]
    question: Question
    keyword_prompt: BasePromptTemplate[Any]
    no_retrieval_prompt: BasePromptTemplate[Any]
    max_concurrency: int
    timeout: float | None
    output_parser: BaseOutputParser[Any]
    document_prompt: BasePromptTemplate[Any]
    document_separator: str
    document_variable_name: str


_SETTINGS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "keyword": (KeywordSettings.of, ("task", "alpha", "beta", "extractor", "min_words", "quorum")),
    "decoding": (DecodingSettings.of, ("task", "gamma", "eta", "max_new_tokens", "stop")),
    "voting": (VotingSettings.of, ("quorum",)),
}
_PROMPTS = {"keyword": ("keyword_prompt",), "decoding": ("no_retrieval_prompt",), "voting": ("choices",)}


def settings_of(aggregation: str, options: Mapping[str, Any]) -> Settings:
    """The core's settings.

    Args:
        aggregation: `keyword`, `decoding` or `voting`.
        options: what the user gave, whichever aggregation it belongs to.

    Raises:
        ValueError: unknown aggregation, an option of another aggregation, or an option that makes no sense.
    """
    if aggregation not in _SETTINGS:
        raise ValueError(f"aggregation={aggregation!r} is unknown; use one of {', '.join(map(repr, _SETTINGS))}")
    make, own = _SETTINGS[aggregation]
    known = (*own, *_PROMPTS[aggregation])
    if foreign := sorted(set(options) - set(known)):
        raise ValueError(f"aggregation={aggregation!r} has no {', '.join(foreign)}; it takes {', '.join(known)}")
    settings: Settings = make(**{name: value for name, value in options.items() if name in own})
    return settings


def default_prompts(settings: Settings) -> PromptSet:
    """The project's prompts for the task."""
    return prompts_for("multiple_choice" if isinstance(settings, VotingSettings) else settings.task)


def default_prompt(settings: Settings, context: str) -> BasePromptTemplate[Any]:
    """The project's isolated prompt for the task, its passages under the name `context`."""
    prompts = default_prompts(settings)
    asks_phrases = isinstance(settings, KeywordSettings) and settings.task == "long_form"
    template = prompts.phrases if asks_phrases and prompts.phrases else prompts.isolated
    return as_langchain(template, context)


@dataclass(frozen=True)
class Case:
    """One call: the question, the groups and, for a vote, the options."""

    question: str
    groups: tuple[PassageGroup, ...]
    choices: tuple[str, ...] = ()

    def plan(self, settings: Settings, model: DecodingModel | None, group_by: GroupBy | None) -> Plan:
        """The core's plan for this call."""
        if isinstance(settings, KeywordSettings):
            return keyword_plan(self.question, self.groups, settings, group_by=group_by)
        if isinstance(settings, VotingSettings):
            return voting_plan(self.question, self.groups, self.choices, settings, group_by=group_by)
        codec = cast("DecodingModel", model).codec
        return decoding_plan(self.question, self.groups, settings, codec, group_by=group_by)

    @property
    def values(self) -> dict[str, str]:
        """What prompts may name besides the chain's input: `query`, and for a vote the lettered `choices`."""
        shown = {"choices": format_choices([*self.choices, NO_INFORMATION])} if self.choices else {}
        return {"query": self.question, **shown}


def choices_of(inputs: Mapping[str, Any], fixed: Sequence[str] | None) -> tuple[str, ...]:
    """The options of a vote: those of this call (input `choices`), else those the chain was made with."""
    return check_choices(inputs.get("choices", fixed))


def documents_of(inputs: Mapping[str, Any], name: str) -> Sequence[Document]:
    """The documents among a chain's input.

    Raises:
        KeyError: there are none.
    """
    if not isinstance(inputs, Mapping) or name not in inputs:
        given = sorted(map(str, inputs)) if isinstance(inputs, Mapping) else type(inputs).__name__
        raise KeyError(f"the input must be a dict with the documents under {name!r}; got {given}")
    found: Sequence[Document] = inputs[name]
    return found
