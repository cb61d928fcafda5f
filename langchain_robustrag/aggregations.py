"""Turns a factory's keyword arguments into a method of the core, its settings and its prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate

from langchain_robustrag.calls import CallOptions
from langchain_robustrag.prompts import as_langchain, check_prompt
from langchain_robustrag.questions import Question
from robustrag_integrations._util.checks import refuse_unknown
from robustrag_integrations.answers.answer import Reader
from robustrag_integrations.defenses.base import MethodSettings
from robustrag_integrations.defenses.method_options import MethodOptions
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings_file import SettingsLike
from robustrag_integrations.grouping.passages import GroupBy
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.prompts import PromptSet

_OF_OBJECTS = {
    **{each.name: f"pass calls=CallOptions({each.name}=...)" for each in fields(CallOptions)},
}
EXTRA_PROMPTS = {"keyword": "keywords", "no_retrieval": None}  # prompts of a `PromptSet`, and their required fields


class RobustOptions(MethodOptions, total=False):
    """The keyword arguments that every factory here takes; `create_robust_documents_chain` describes them."""

    settings: SettingsLike | None
    aggregation: str | None
    group_by: GroupBy | None
    votes: VoteRules | None
    calls: CallOptions | None
    citation_markers: bool
    reader: Reader
    choices: Sequence[str]
    question: Question
    keyword_prompt: BasePromptTemplate[Any]
    no_retrieval_prompt: BasePromptTemplate[Any]
    final_llm: LanguageModelLike
    output_schema: Any
    output_parser: BaseOutputParser[Any]
    document_prompt: BasePromptTemplate[Any]
    document_separator: str
    document_variable_name: str


def checked_settings(method: Method, settings: Mapping[str, Any], others: Collection[str]) -> MethodSettings:
    """Return the core's settings for a method.

    Args:
        method: the method.
        settings: the given settings, by name; None for the default.
        others: the names of what else was given that not every method takes: `choices` and prompts.

    Raises:
        TypeError: an argument that no method takes.
        ValueError: an argument that another method takes, or an invalid one.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    taken = {"task", *(setting.name for known in METHODS.values() for setting in known.settings)}
    refuse_unknown(
        given, sorted(taken), "a method", others=[*RobustOptions.__annotations__, *_OF_OBJECTS], instead=_OF_OBJECTS
    )
    prompts = [f"{name}_prompt" for name in EXTRA_PROMPTS if name in method.prompts]
    final = ["final_llm", "output_schema"] if method.asks_once_more else []
    method.check_names([*given, *others], ("task", *prompts, *final, *(["choices"] if method.takes_choices else [])))
    checked: MethodSettings = method.settings_of(given)
    return checked


def extra_prompt(
    name: str, given: BasePromptTemplate[Any] | None, shipped: PromptSet, context: str, *, own: bool
) -> BasePromptTemplate[Any] | None:
    """Return a prompt without documents: the user's, or the project's `own` if it is wanted.

    Raises:
        TypeError, ValueError: not a prompt template, without the variable it needs, or with documents.
    """
    if given is None:
        template = getattr(shipped, name) if own else None
        return as_langchain(template) if template is not None else None
    check_prompt(given, EXTRA_PROMPTS[name], f"{name}_prompt")
    if context in given.input_variables:
        raise ValueError(f"{name}_prompt names {context}: it must not show documents")
    return given
