"""Structured answers: a schema for the final call alone.

What single sources say stays text, from which keywords are read; only the answer at the end is made to fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_core.utils.json import parse_json_markdown
from pydantic import BaseModel, ValidationError

from langchain_robustrag.language_models import rebuilt, wrapped_models
from langchain_robustrag.replies import text_of
from robustrag_integrations.answers.abstained import Abstained
from robustrag_integrations.answers.answer import RobustAnswer

_INSTRUCTIONS = "Reply with one JSON object that fits this JSON schema, and nothing else:\n"
_MARK = "ls_structured_output_format"  # an argument that LangChain binds to models with structured output


@dataclass(frozen=True)
class Structured:
    """A schema for the final answer: a pydantic class, a `TypedDict`, or a JSON schema as a dict."""

    schema: Any

    @classmethod
    def of(cls, schema: Any, llm: Runnable[Any, Any]) -> Structured:
        """Return the schema, tried on the model; TypeError if it is none."""
        if isinstance(schema, Mapping):
            schema = {"title": "Answer", "description": "The answer.", **schema}
        elif not _is_pydantic(schema) and not hasattr(schema, "__total__"):
            raise TypeError(
                f"output_schema must be a pydantic (version 2) class, a TypedDict or a JSON schema, got {schema!r:.80}"
            )
        structured = cls(schema)
        structured.around(llm)
        return structured

    def around(self, llm: Runnable[Any, Any]) -> Runnable[Any, Any]:
        """Return the model, bound to give JSON of this schema; a model without structured output is told in words.

        It comes in one piece, since an object that grows while it is streamed may be incomplete.
        """

        def change(model: Any) -> Any:
            is_chat = isinstance(model, BaseChatModel)
            return model.with_structured_output(self.schema, include_raw=True) if is_chat else model

        try:
            asked = rebuilt(llm, change)
        except NotImplementedError:
            asked = llm
        if asked is llm:
            asked = RunnableLambda[Any, Any](self._told, name="with_schema") | llm

        def call(value: Any, config: RunnableConfig) -> str:
            return _dumped(asked.invoke(value, config))

        async def acall(value: Any, config: RunnableConfig) -> str:
            return _dumped(await asked.ainvoke(value, config))

        return RunnableLambda(call, acall, name="as_json")

    def _told(self, value: Any) -> PromptValue:
        schema = self.schema
        described = schema.model_json_schema() if _is_pydantic(schema) else convert_to_openai_function(schema)
        told = _INSTRUCTIONS + json.dumps(described, ensure_ascii=False)
        if isinstance(value, ChatPromptValue):
            return ChatPromptValue(messages=[*value.messages, HumanMessage(told)])
        return StringPromptValue(text=f"{value.to_string() if isinstance(value, PromptValue) else value}\n\n{told}")

    @property
    def type(self) -> Any:
        """The type of what `loaded` gives."""
        return self.schema | Abstained if _is_pydantic(self.schema) else dict[str, Any]

    def loaded(self, answer: RobustAnswer) -> Any:
        """Return the answer as an object of the schema, or `Abstained`; as a dict where the schema gives dicts."""
        if answer.abstained:
            abstained = Abstained.of(answer)
            return abstained if _is_pydantic(self.schema) else abstained.model_dump(mode="json")
        try:
            if _is_pydantic(self.schema):
                return self.schema.model_validate_json(answer.text)
            found = json.loads(answer.text)
            wanted = convert_to_openai_function(self.schema)["parameters"].get("required", [])
            if not isinstance(found, dict) or not found.keys() >= set(wanted):
                raise ValueError(f"it must be an object with {', '.join(wanted)}")
        except (ValidationError, ValueError) as error:
            raise OutputParserException(
                f"the final answer does not fit output_schema: {error}", llm_output=answer.text
            ) from error
        return found


def refuse_structured(llm: Any, argument: str = "llm") -> None:
    """Raise TypeError for a model that was given a schema already: every source would have to fill it in."""
    for model, bound in wrapped_models(llm):
        if _MARK in bound or isinstance(model, (PydanticOutputParser, JsonOutputToolsParser)):
            raise TypeError(
                f"{argument} gives structured output, so that every source would fill in the schema. Give the model "
                "itself, and the schema as output_schema=...: the final call alone is structured then"
            )


def _dumped(said: Any) -> str:
    """Return the object as JSON; a reply that holds none as it is: an abstention, or an error later on."""
    if isinstance(said, Mapping):
        raw, found = said["raw"], said["parsed"]
        if said["parsing_error"] is not None:
            return text_of(raw) or json.dumps([call["args"] for call in getattr(raw, "tool_calls", [])])
        if isinstance(found, BaseModel):
            return found.model_dump_json(by_alias=True, round_trip=True)
        return "" if found is None else json.dumps(found, ensure_ascii=False, default=str)
    try:
        found = parse_json_markdown(text_of(said))
    except ValueError:
        found = None
    return json.dumps(found, ensure_ascii=False) if isinstance(found, dict) else text_of(said)


def _is_pydantic(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)
