"""Prompts: the project's own as LangChain templates, and LangChain templates for models that read plain text.

A passage is only ever a *value* of a template, put in by LangChain's own formatting, which does not interpret values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.prompts import PromptTemplate as StringTemplate

from robustrag_integrations.prompts import Prompt, PromptSet, PromptTemplate

_SLOT = "\ue000robustrag-context\ue001"  # private characters: nothing a prompt would say

# What the plans fill in: the one part of each prompt that passages can reach. `calls` puts the prompt around it.
CARRIERS = PromptSet(
    isolated=PromptTemplate("", "{context}", ("context",)),
    no_retrieval=PromptTemplate("", "{query}", ("query",)),
    keyword=PromptTemplate("", "{keywords}", ("keywords",)),
)


def as_langchain(template: PromptTemplate, context: str = "context") -> StringTemplate:
    """One of the project's prompts as a LangChain prompt, its passages under the name `context`."""
    instruction = template.instruction.replace("{", "{{").replace("}", "}}")
    return StringTemplate.from_template(instruction + template.body.replace("{context}", "{" + context + "}"))


def check_prompt(prompt: Any, needs: str, what: str = "Prompt") -> None:
    """Raise unless it is a prompt template with the variable.

    Raises:
        TypeError: not a prompt template.
        ValueError: the variable is missing, in the words of `create_stuff_documents_chain`.
    """
    if not isinstance(prompt, BasePromptTemplate):
        raise TypeError(
            f"{what} must be a prompt template, got {type(prompt).__name__}; "
            "make one with ChatPromptTemplate.from_template"
        )
    if needs not in prompt.input_variables:
        raise ValueError(
            f"{what} must accept {needs} as an input variable. "
            f"Received prompt with input variables: {prompt.input_variables}"
        )


def check_inputs(prompt: BasePromptTemplate[Any], values: Mapping[str, Any]) -> None:
    """Raise KeyError when an input is missing: the caller's mistake, not a passage's."""
    if missing := sorted(set(prompt.input_variables) - set(values)):
        raise KeyError(
            f"Input to {type(prompt).__name__} is missing variables {missing}. Expected: {prompt.input_variables} "
            f"Received: {sorted(map(str, values))}"
        )


def as_text(value: PromptValue) -> str:
    """A prompt as plain text: a chat prompt's messages with an empty line between two."""
    if isinstance(value, StringPromptValue):
        return value.text
    return "\n\n".join(str(m.text) for m in value.to_messages())


def located(template: BasePromptTemplate[Any], values: Mapping[str, Any], name: str, context: str) -> Prompt:
    """A prompt that knows where its context stands, so that a local model can cut that part alone.

    Raises:
        ValueError: the template does not show the context once, as it is.
    """
    before, slot, after = as_text(template.format_prompt(**{**values, name: _SLOT})).partition(_SLOT)
    if not slot or _SLOT in after:
        raise ValueError(f"for decoding aggregation the prompt must show {{{name}}} once, unchanged")
    return Prompt(before + context + after, (len(before), len(before) + len(context)))
