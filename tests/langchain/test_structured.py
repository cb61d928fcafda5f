"""A schema, and a model of its own, for the final answer alone."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import PydanticOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_robustrag import Abstained, create_robust_documents_chain
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, Reader, Recorder, planted, read, truthful
from tests.langchain.test_chain import called

GIVEN = {"input": QUESTION, "context": [*truthful(), planted()]}
STYLES = ["invoke", "ainvoke", "stream", "astream"]


class City(BaseModel):
    """A city."""

    name: str = Field(alias="cityName")
    country: str = "France"


class CityDict(TypedDict):
    """A city."""

    name: str


JSON_SCHEMA = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PARIS = City(cityName="Paris")
SCHEMAS: list[tuple[Any, Any]] = [
    (City, PARIS),
    (CityDict, {"name": "Paris"}),
    (JSON_SCHEMA, {"name": "Paris"}),
    ({"type": "object", "properties": {"name": {"type": "string"}}}, {"name": "Paris"}),
]


class NativeModel(Reader):
    """A model with native structured output: it calls the tool that it is bound to, and does not stream."""

    _stream = BaseChatModel._stream
    _astream = BaseChatModel._astream

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools, **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        said = self.script.reply("\n".join(str(m.content) for m in messages)).text
        if not kwargs.get("tools"):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])
        [schema] = kwargs["tools"]
        name = schema.__name__ if isinstance(schema, type) else schema["title"]
        key = "cityName" if schema is City else "name"
        call = {"name": name, "args": {key: said.removeprefix("It is ").removesuffix(" indeed")}, "id": "1"}
        ended = {"stop_reason": "tool_use"}  # as Anthropic's say
        message = AIMessage("", tool_calls=[call], response_metadata=ended)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages, *args, **kwargs)


def told(prompt: str) -> str:
    if "JSON schema" not in prompt:
        return read(prompt)
    key = "cityName" if "cityName" in prompt else "name"
    return f'Sure!\n```json\n{{"{key}": "Paris"}}\n```'


async def answered(chain: Any, style: str) -> Any:
    if style == "invoke":
        return chain.invoke(GIVEN)
    if style == "ainvoke":
        return await chain.ainvoke(GIVEN)
    pieces = list(chain.stream(GIVEN)) if style == "stream" else [piece async for piece in chain.astream(GIVEN)]
    [whole] = pieces
    return whole


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("schema", "expected"), SCHEMAS, ids=["pydantic", "typed dict", "json schema", "bare"])
@pytest.mark.parametrize("native", [True, False], ids=["native", "told"])
async def test_the_final_answer_has_the_schema(native: bool, schema: Any, expected: Any, style: str) -> None:
    model = NativeModel() if native else Reader(answer=told)
    chain = create_robust_documents_chain(model, PROMPT, output_schema=schema)
    assert await answered(chain, style) == expected
    assert len(model.prompts) == 7
    assert not any("JSON" in prompt for prompt in model.prompts[:6])


@pytest.mark.parametrize("style", STYLES)
async def test_an_abstention_has_a_structured_form(style: str) -> None:
    silent = Reader(answer=lambda _: "I don't know")
    found = await answered(create_robust_documents_chain(silent, PROMPT, output_schema=City, **FINAL), style)
    assert isinstance(found, Abstained)
    assert not found
    assert found.text == "I don't know"
    found = await answered(create_robust_documents_chain(silent, PROMPT, output_schema=JSON_SCHEMA, **FINAL), style)
    assert (found["abstained"], found["text"]) == (True, "I don't know")


@pytest.mark.parametrize("style", STYLES)
async def test_what_does_not_fit_is_an_error_with_the_report(style: str) -> None:
    recorder = Recorder()
    wrong = Reader(answer=lambda prompt: '{"town": "Paris"}' if "JSON schema" in prompt else read(prompt))
    for schema in (City, JSON_SCHEMA):
        chain = create_robust_documents_chain(wrong, PROMPT, output_schema=schema, **FINAL)
        with pytest.raises(OutputParserException, match="does not fit output_schema") as caught:
            await called(chain, style, {"callbacks": [recorder]})
        assert caught.value.robustness.text == '{"town": "Paris"}'  # type: ignore[attr-defined]
    assert len(recorder.events) == 2


def test_a_structured_model_is_told_where_the_schema_belongs() -> None:
    for llm in (NativeModel().with_structured_output(City), Reader() | PydanticOutputParser(pydantic_object=City)):
        with pytest.raises(TypeError, match="llm gives structured output, so that every source"):
            create_robust_documents_chain(llm, PROMPT, **FINAL)
        with pytest.raises(TypeError, match="final_llm gives structured output"):
            create_robust_documents_chain(Reader(), PROMPT, final_llm=llm, **FINAL)
    assert "Paris" in create_robust_documents_chain(Reader() | StrOutputParser(), PROMPT, **FINAL).invoke(GIVEN)
