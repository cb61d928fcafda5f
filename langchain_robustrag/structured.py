"""Structured answers: a schema for the final call alone.

What single groups say stays text, from which keywords are read; only the answer at the end is made to fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import PydanticOutputParser, StrOutputParser
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
    """A schema for the final answer.

    Attributes:
        schema: a pydantic class, a `TypedDict`, or a JSON schema as a dict.
        native: True if the model is given the schema by its own `with_structured_output`; else it is told in words.
    """

    schema: Any
    native: bool

    @classmethod
    def of(cls, schema: Any, llm: Runnable[Any, Any]) -> Structured:
        """Return the schema with the way in which this model takes it.

        Raises:
            TypeError: not a schema.
            ValueError: the model's own way does not take the schema.
        """
        if isinstance(schema, Mapping):
            schema = {"title": "Answer", "description": "The answer.", **schema}
        elif not _is_pydantic(schema) and not hasattr(schema, "__total__"):
            raise TypeError(
                f"output_schema must be a pydantic (version 2) class, a TypedDict or a JSON schema, got {schema!r:.80}"
            )
        try:
            native = _natively(llm, schema)
        except NotImplementedError:
            native = llm
        return cls(schema, native is not llm)

    def around(self, llm: Runnable[Any, Any]) -> Runnable[Any, Any]:
        """Return the model, bound to give JSON of this schema."""
        if self.native:
            return _whole(_natively(llm, self.schema))
        told = RunnableLambda[Any, Any](self._told, name="with_schema")
        return told | llm | StrOutputParser() | RunnableLambda(self._read, name="as_json")

    def loaded(self, answer: RobustAnswer) -> Any:
        """Return the answer as an object of the schema, or `Abstained`; as a dict where the schema gives dicts.

        Raises:
            OutputParserException: the text does not fit the schema.
        """
        if answer.abstained:
            abstained = Abstained.of(answer)
            return abstained if _is_pydantic(self.schema) else abstained.model_dump(mode="json")
        return self._valid(answer.text)

    @property
    def output_type(self) -> Any:
        """The type of an answer."""
        return self.schema if not isinstance(self.schema, Mapping) else dict[str, Any]

    def _valid(self, text: str) -> Any:
        try:
            if _is_pydantic(self.schema):
                return self.schema.model_validate_json(text)
            found = json.loads(text)
        except (ValidationError, ValueError) as error:
            raise OutputParserException(
                f"the final answer does not fit output_schema: {error}", llm_output=text
            ) from error
        wanted = convert_to_openai_function(self.schema)["parameters"].get("required", [])
        if not isinstance(found, dict) or (missing := [name for name in wanted if name not in found]):
            lacks = f"it lacks {missing}" if isinstance(found, dict) else f"it is a {type(found).__name__}"
            raise OutputParserException(f"the final answer does not fit output_schema: {lacks}", llm_output=text)
        return found

    def _told(self, value: Any) -> PromptValue:
        schema = (
            self.schema.model_json_schema() if _is_pydantic(self.schema) else convert_to_openai_function(self.schema)
        )
        told = _INSTRUCTIONS + json.dumps(schema, ensure_ascii=False)
        if isinstance(value, ChatPromptValue):
            return ChatPromptValue(messages=[*value.messages, HumanMessage(told)])
        text = value.to_string() if isinstance(value, PromptValue) else str(value)
        return StringPromptValue(text=f"{text}\n\n{told}")

    def _read(self, reply: str) -> str:
        """Return the JSON in a reply. A reply without any stays as it is: an abstention, or an error later on."""
        try:
            found = parse_json_markdown(reply)
        except ValueError:
            return reply
        return json.dumps(found, ensure_ascii=False) if isinstance(found, dict) else reply


def refuse_structured(llm: Any, argument: str = "llm") -> None:
    """Raise TypeError for a model that was given a schema already: every group would have to fill it in."""
    if not isinstance(llm, Runnable):
        return
    for model, bound in wrapped_models(llm):
        if _MARK in bound or isinstance(model, (PydanticOutputParser, JsonOutputToolsParser)):
            raise TypeError(
                f"{argument} gives structured output, so that every group would fill in the schema, and keywords were "
                f"its fields. Give the model itself, and the schema as output_schema=...: the final call alone is "
                "structured then"
            )


def _natively(llm: Runnable[Any, Any], schema: Any) -> Runnable[Any, Any]:
    def change(model: Any) -> Any:
        if not isinstance(model, BaseChatModel):
            return model
        try:
            return model.with_structured_output(schema, include_raw=True)
        except TypeError:
            return model.with_structured_output(schema)

    return cast("Runnable[Any, Any]", rebuilt(llm, change))


def _whole(native: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return the model's object as JSON in one piece: an object that grows while it is streamed may be incomplete."""

    def call(value: Any, config: RunnableConfig) -> str:
        return _dumped(native.invoke(value, config))

    async def acall(value: Any, config: RunnableConfig) -> str:
        return _dumped(await native.ainvoke(value, config))

    return RunnableLambda(call, acall, name="as_json")


def _dumped(said: Any) -> str:
    """Return the object as JSON; the reply as it is where it could not be parsed."""
    if isinstance(said, Mapping) and said.keys() == {"raw", "parsed", "parsing_error"}:
        if said["parsing_error"] is not None:
            return text_of(said["raw"]) or json.dumps([c["args"] for c in getattr(said["raw"], "tool_calls", [])])
        said = said["parsed"]
    if isinstance(said, BaseModel):
        return said.model_dump_json(by_alias=True, round_trip=True)
    return "" if said is None else json.dumps(said, ensure_ascii=False, default=str)


def _is_pydantic(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)
