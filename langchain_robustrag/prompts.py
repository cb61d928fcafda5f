"""Prompts: the project's own as LangChain templates, and LangChain templates in place of the project's own.

A passage is only ever a *value* of a template, put in by LangChain's own formatting, which does not interpret values.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.prompts import PromptTemplate as StringTemplate

from robustrag_integrations.text.prompts import Prompt, PromptTemplate, shows_json

_SLOT = "\ue000robustrag-context\ue001"  # private characters: nothing a prompt would say


@dataclass(frozen=True)
class FilledPrompt(Prompt):
    """The prompt of one LangChain call, formatted within its run. Passages can reach its `text` alone."""

    template: BasePromptTemplate[Any] = field(kw_only=True, compare=False)
    values: Mapping[str, Any] = field(kw_only=True, compare=False)
    request: str = field(kw_only=True, default="", compare=False)
    leads: bool = field(kw_only=True, default=False, compare=False)

    def requesting(self, value: PromptValue) -> PromptValue:
        """Return the formatted prompt with its request."""
        return with_request(value, self.request, leads=self.leads)


@dataclass(frozen=True)
class FilledTemplate(PromptTemplate):
    """A LangChain template where the core expects one of its own; the body is the value of its slot.

    Attributes:
        inputs: its other values: the chain's input without the documents.
        request: what is added to the user's words (`with_request`).
        leads: True if the request stands before them.
        as_text: True for a model of the core, which reads text and has to know where the passages stand in it.
    """

    template: BasePromptTemplate[Any] = field(kw_only=True, compare=False)
    inputs: Mapping[str, Any] = field(kw_only=True, compare=False)
    slot: str = field(kw_only=True, compare=False)
    request: str = field(kw_only=True, default="", compare=False)
    leads: bool = field(kw_only=True, default=False, compare=False)
    as_text: bool = field(kw_only=True, default=False, compare=False)

    def render(self, **values: str) -> Prompt:
        """Return the template with the values of one call."""
        body, slot = super().render(**values), self.slot
        asked: dict[str, Any] = {"request": self.request, "leads": self.leads}
        filled = {**self.inputs, **{k: v for k, v in values.items() if k not in self.fields}, slot: body.text}
        if not self.as_text:
            return FilledPrompt(body.text, body.context, template=self.template, values=filled, **asked)
        if "context" in values:
            return located(self.template, filled, slot, **asked)
        return Prompt(as_text(with_request(self.template.format_prompt(**filled), **asked)))


def as_langchain(template: PromptTemplate, context: str = "context") -> StringTemplate:
    """Return one of the project's prompts as a LangChain prompt, its passages under the name `context`."""
    instruction = template.instruction.replace("{", "{{").replace("}", "}}")
    return StringTemplate.from_template(instruction + template.body.replace("{context}", "{" + context + "}"))


def check_prompt(prompt: Any, needs: str, what: str = "Prompt", *, never: str = "") -> None:
    """Raise unless this is a prompt template with a variable, and without the one for documents where it is `never`."""
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
    if never in prompt.input_variables:
        raise ValueError(f"{what} names {never}: it must not show documents")


def shown_names(*prompts: BasePromptTemplate[Any]) -> frozenset[str]:
    """Return the inputs that prompts show, optional ones included."""
    return frozenset(name for p in prompts for name in (*p.input_variables, *p.optional_variables))


def asks_for_json(prompt: BasePromptTemplate[Any]) -> bool:
    """True if a prompt shows `format_instructions`, or an object."""
    if "format_instructions" in {*shown_names(prompt), *prompt.partial_variables}:
        return True
    values = {name: "" if prompt.input_types.get(name, str) is str else [] for name in prompt.input_variables}
    with suppress(Exception):  # a template that needs real values says so when it is filled in
        return shows_json(as_text(prompt.format_prompt(**values)))
    return False


def check_inputs(prompt: BasePromptTemplate[Any], values: Mapping[str, Any]) -> None:
    """Raise KeyError when an input is missing: the caller's mistake, not a passage's."""
    if missing := sorted(set(prompt.input_variables) - set(values)):
        raise KeyError(
            f"Input to {type(prompt).__name__} is missing variables {missing}. Expected: {prompt.input_variables} "
            f"Received: {sorted(map(str, values))}"
        )


def as_text(value: PromptValue) -> str:
    """Return a prompt as plain text: a chat prompt's messages with an empty line between two."""
    if isinstance(value, StringPromptValue):
        return value.text
    return "\n\n".join(str(m.text) for m in value.to_messages())


def with_request(value: PromptValue, request: str, *, leads: bool = False) -> PromptValue:
    """Return a formatted prompt with a request at the end of its last message; as it is for an empty one.

    An answer or a tool's result that stands last is left alone: there the request ends the message before it, if any.
    One that `leads` stands before the text: in the system message that comes first, or else in that last message.
    """
    if not request:
        return value
    if isinstance(value, StringPromptValue):
        return StringPromptValue(text=f"{request}\n\n{value.text}" if leads else f"{value.text}\n\n{request}")
    messages = value.to_messages()
    if leads and messages and isinstance(messages[0], SystemMessage):
        return ChatPromptValue(messages=[_joined(messages[0], request, leads=True), *messages[1:]])
    asking = [place for place, m in enumerate(messages) if not isinstance(m, (AIMessage, ToolMessage, FunctionMessage))]
    if not asking:
        return ChatPromptValue(messages=[*messages, HumanMessage(request)])
    messages[asking[-1]] = _joined(messages[asking[-1]], request, leads=leads)
    return ChatPromptValue(messages=messages)


def _joined(message: BaseMessage, request: str, *, leads: bool) -> BaseMessage:
    content: Any = message.content
    if isinstance(content, str):
        content = f"{request}\n\n{content}" if leads else f"{content}\n\n{request}"
    else:
        block = {"type": "text", "text": request}
        content = [block, *content] if leads else [*content, block]
    return message.model_copy(update={"content": content})


def located(template: BasePromptTemplate[Any], values: Mapping[str, Any], name: str, **asked: Any) -> Prompt:
    """Return a prompt that knows where its passages (the value `name`) are: a local model truncates that part alone.

    `asked` are the request and its place (`with_request`).
    """
    shown = with_request(template.format_prompt(**{**values, name: _SLOT}), **asked)
    before, slot, after = as_text(shown).partition(_SLOT)
    if not slot or _SLOT in after:
        raise ValueError(f"a prompt that is read as text, as here, must show {{{name}}} once, unchanged")
    context = values[name]
    return Prompt(before + context + after, (len(before), len(before) + len(context)))
