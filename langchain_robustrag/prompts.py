"""Prompts: the project's own as LangChain templates, and LangChain templates in place of the project's own.

A passage is only ever a *value* of a template, put in by LangChain's own formatting, which does not interpret values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.prompts import PromptTemplate as StringTemplate

from robustrag_integrations.prompts import Prompt, PromptSet, PromptTemplate

_SLOT = "\ue000robustrag-context\ue001"  # private characters: nothing a prompt would say


@dataclass(frozen=True)
class FilledPrompt(Prompt):
    """What one LangChain call is asked.

    Attributes:
        text: the one part that passages can reach: a group's passages, or the keywords.
        values: what LangChain's template is filled with, this part among it.
    """

    values: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class FilledTemplate(PromptTemplate):
    """The slot of a LangChain template that a plan fills in, where the core expects a template of its own.

    Attributes:
        inputs: what else the template is filled with: the chain's input without the documents.
        names: what the template calls the plan's fields, where it calls them something else.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def render(self, **values: str) -> FilledPrompt:
        """The values of one call; LangChain formats them when the call is made, within its run."""
        slot = super().render(**values)
        named = {self.names.get(name, name): value for name, value in values.items()}
        return FilledPrompt(slot.text, slot.context, values={**self.inputs, **named})


@dataclass(frozen=True)
class FormattedTemplate(PromptTemplate):
    """A LangChain template for a local model, which reads text and has to know where the passages stand in it.

    Attributes:
        around: puts LangChain's template around the plan's fields.
    """

    around: Callable[[Mapping[str, str]], Prompt] = field(compare=False, kw_only=True)

    def render(self, **values: str) -> Prompt:
        """The whole prompt.

        Raises:
            ValueError: the template does not show the passages once, as they are.
        """
        return self.around(values)


def filled_prompts(inputs: Mapping[str, Any], context: str) -> PromptSet:
    """What plans ask LangChain's models; the templates themselves stand in `ModelCalls`.

    Args:
        inputs: the chain's input without the documents.
        context: what the isolated template calls the passages.
    """
    return PromptSet(
        isolated=FilledTemplate("", "{context}", ("context",), inputs=inputs, names={"context": context}),
        no_retrieval=FilledTemplate("", "{query}", ("query",), inputs=inputs),
        keyword=FilledTemplate("", "{keywords}", ("keywords",), inputs=inputs),
    )


def formatted_prompts(
    isolated: BasePromptTemplate[Any], no_retrieval: BasePromptTemplate[Any], inputs: Mapping[str, Any], context: str
) -> PromptSet:
    """What plans ask local models."""

    def alone(values: Mapping[str, str]) -> Prompt:
        return Prompt(as_text(no_retrieval.format_prompt(**{**inputs, **values})))

    def shown(values: Mapping[str, str]) -> Prompt:
        passages = values["context"]
        others = {name: value for name, value in values.items() if name != "context"}
        return located(isolated, {**inputs, **others}, context, passages)

    return PromptSet(
        isolated=FormattedTemplate("", "{context}", ("context",), around=shown),
        no_retrieval=FormattedTemplate("", "{query}", ("query",), around=alone),
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
