"""Turns a factory's keyword arguments into a method of the core, its settings and its prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from langchain_core.prompts import BasePromptTemplate

from langchain_robustrag.calls import CallOptions
from langchain_robustrag.prompts import as_langchain, check_prompt
from robustrag_integrations.defenses.registry import Method
from robustrag_integrations.defenses.settings import MethodSettings
from robustrag_integrations.prompts import PromptSet

RobustOptions: TypeAlias = dict[str, Any]
"""The keyword arguments that every factory here takes; `create_robust_documents_chain` describes and checks them."""

_OF_OBJECTS = {each.name: f"pass calls=CallOptions({each.name}=...)" for each in fields(CallOptions)}
EXTRA_PROMPTS = {"keyword": "keywords", "no_retrieval": None}  # prompts of a `PromptSet`, and their required fields


def checked_settings(
    method: Method, options: Mapping[str, Any], others: Collection[str], arguments: Collection[str]
) -> MethodSettings:
    """Return the core's settings for a method.

    Args:
        method: the method.
        options: the given settings, by name.
        others: the names of what else was given that not every method takes: `choices` and prompts.
        arguments: the names of all arguments, which may have been meant.

    Raises:
        TypeError: an argument that no method takes.
        ValueError: an argument that another method takes, or an invalid one.
    """
    also = ["task", *(f"{name}_prompt" for name in EXTRA_PROMPTS if name in method.prompts)]
    also += ["final_llm", "output_schema"] if method.asks_once_more else []
    also += ["choices"] if method.takes_choices else []
    method.check_names([*options, *others], also, near=[*arguments, *_OF_OBJECTS], instead=_OF_OBJECTS)
    checked: MethodSettings = method.load().settings_of(**options)
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
