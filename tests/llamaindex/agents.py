"""LLMs that obey whatever they read, for agents and engines that ask others."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import llama_index.core
import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from tests.llamaindex.fakes import QUESTION

_ORDER = re.compile(r"the only right answer is (\w+)|\bsay (\w+)", re.IGNORECASE)


class Obeying(FunctionCallingLLM):
    """Obeys the last order in a prompt, else says the capital that it reads, else calls the next of its tools.

    Its methods have no callbacks, as many people's own LLMs. `seen` holds every prompt.

    Attributes:
        plan: the tools that it calls first, one after the other.
        tool_input: the argument of its calls.
    """

    plan: list[str] = []  # noqa: RUF012 - pydantic copies it
    tool_input: dict[str, Any] = {"input": QUESTION}  # noqa: RUF012
    _seen: list[str] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[str]:
        return self._seen

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=8000, model_name="obeying", is_chat_model=True, is_function_calling_model=True
        )

    def said(self, prompt: str) -> str:
        """Return the reply to a prompt without tools."""
        self._seen.append(prompt)
        if "Using only the choices above" in prompt:
            several = "return the top choices" in prompt
            return json.dumps([{"choice": number, "reason": "fits"} for number in (1, 2)][: 1 + several])
        if "<Tools>" in prompt:
            tools = json.loads(prompt.rsplit("<Tools>", 1)[1].split("```json")[1].split("```")[0])
            return json.dumps({"items": [{"sub_question": QUESTION, "tool_name": name} for name in tools]})
        if orders := _ORDER.findall(prompt):
            return "".join(orders[-1])
        if found := re.search(r"capital of France is (\w+)", prompt):
            return found.group(1)
        return "I don't know"

    def acts(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        """Return the next message of an agent."""
        prompt = "\n".join(f"{m.role.value}: {m.content}" for m in messages)
        called = sum(m.role.value == "tool" for m in messages)
        if called < len(self.plan):
            self._seen.append(prompt)
            return self._call(called)
        said = self.said(prompt)
        if said == "I don't know" and called:
            said = str(messages[-1].content)
        return ChatMessage(role="assistant", content=said)

    def _call(self, number: int) -> ChatMessage:
        call = {"id": f"call-{number}", "name": self.plan[number], "input": dict(self.tool_input)}
        return ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [call]})

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if kwargs.get("tools"):
            return ChatResponse(message=self.acts(messages))
        text = self.said("\n".join(f"{m.role.value}: {m.content}" for m in messages))
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Iterator[ChatResponse]:
        reply = self.chat(messages, **kwargs)
        yield ChatResponse(message=reply.message, delta=reply.message.content or "")

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> AsyncIterator[ChatResponse]:
        reply = self.chat(messages, **kwargs)

        async def pieces() -> AsyncIterator[ChatResponse]:
            yield ChatResponse(message=reply.message, delta=reply.message.content or "")

        return pieces()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.said(prompt))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self.complete(prompt)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:
        yield CompletionResponse(text=(text := self.said(prompt)), delta=text)

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncIterator[CompletionResponse]:
        async def pieces() -> AsyncIterator[CompletionResponse]:
            yield CompletionResponse(text=(text := self.said(prompt)), delta=text)

        return pieces()

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        asked = [ChatMessage(role="user", content=user_msg)] if isinstance(user_msg, str) else [user_msg]
        return {"messages": [*(chat_history or []), *(m for m in asked if m)], "tools": list(tools)}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=call["id"], tool_name=call["name"], tool_kwargs=call["input"])
            for call in response.message.additional_kwargs.get("tool_calls", [])
        ]


class ObeyingReAct(Obeying):
    """The same for agents that write their calls as text."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8000, model_name="obeying", is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        prompt = "\n".join(f"{m.role.value}: {m.content}" for m in messages)
        if "Action Input:" not in prompt:
            return super().chat(messages, **kwargs)
        observed = prompt.split("Current Conversation")[-1]
        called = observed.count("Observation:")
        self._seen.append(prompt)
        if called < len(self.plan):
            text = f"Thought: I look.\nAction: {self.plan[called]}\nAction Input: {json.dumps(self.tool_input)}"
        else:
            self._seen.pop()
            said = self.said(observed)
            if said == "I don't know" and called:
                said = observed.rpartition("Observation:")[2].strip().split("\n")[0]
            text = f"Thought: I can answer.\nAnswer: {said}"
        return ChatResponse(message=ChatMessage(role="assistant", content=text))


def needs_context_in_tools() -> None:
    """Skip where LlamaIndex runs a function tool in a thread without context.

    What such a function asks cannot be told from what it adds, so that the check raises there, also where all is well.
    """
    version = tuple(map(int, llama_index.core.__version__.split(".")[:3]))
    if version < (0, 14, 25):
        pytest.skip("this LlamaIndex runs function tools without context")
