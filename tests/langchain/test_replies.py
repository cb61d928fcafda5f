"""What LangChain's models reply: text by the type of its block, and how it ended, in every style."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from langchain_robustrag import calls, create_robust_documents_chain
from langchain_robustrag.replies import ending_of, response_of, text_of
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.reply import Ending
from tests.langchain.test_configured_models import STYLES, report

PROMPT = ChatPromptTemplate.from_messages([("human", "Context: {context}\n{input}")])
HONEST = [f"Note {n}: Karl Gross won the election." for n in range(9)]
GIVEN = {
    "input": "Who won the election?",
    "context": [Document(text) for text in [*HONEST, "Hans Wolf won the election."]],
}
TRACE = "If absent, reply I don't know. Hans Wolf is not said to have won."

CONTENTS: list[tuple[str, Any, int]] = [
    ("text alone", "Karl Gross", 0),
    ("a list of texts", ["Karl ", "Gross"], 0),
    ("Anthropic", [{"type": "thinking", "thinking": TRACE, "signature": "abc"},
                   {"type": "redacted_thinking", "data": "xyz"}, {"type": "text", "text": "Karl Gross"}], len(TRACE)),
    ("reasoning last", [{"type": "text", "text": "Karl Gross"}, {"type": "thinking", "thinking": TRACE}], len(TRACE)),
    ("standard", [{"type": "reasoning", "reasoning": TRACE}, {"type": "text", "text": "Karl Gross"}], len(TRACE)),
    ("Responses", [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": TRACE}]},
                   {"type": "text", "text": "Karl Gross", "annotations": []}], len(TRACE)),
    ("Responses, raw", [{"type": "reasoning", "summary": [], "encrypted_content": "zzz"},
                        {"type": "message", "content": [{"type": "output_text", "text": "Karl Gross"}]}], 0),
    ("a commentary", [{"type": "text", "text": TRACE, "phase": "commentary"},
                      {"type": "text", "text": "Karl Gross", "phase": "final_answer"}], len(TRACE)),
    ("Bedrock", [{"type": "reasoning_content", "reasoning_content": {"text": TRACE, "signature": "a"}},
                 {"type": "text", "text": "Karl Gross"}], len(TRACE)),
    ("Mistral", [{"type": "thinking", "thinking": [{"type": "text", "text": TRACE}]},
                 {"type": "text", "text": "Karl Gross"}], len(TRACE)),
    ("tools and citations", [{"type": "server_tool_use", "name": "search", "input": {"query": "Hans Wolf"}},
                             {"type": "web_search_tool_result", "content": [{"text": "Hans Wolf"}]},
                             {"type": "text", "text": "Karl ", "citations": [{"cited_text": "Hans Wolf"}]},
                             {"type": "text", "text": "Gross"},
                             {"type": "tool_use", "name": "vote", "input": {"for": "Hans Wolf"}}], 0),
    ("wrapped", [{"type": "non_standard", "value": {"type": "redacted_thinking", "data": "x"}},
                 {"type": "text", "text": "Karl Gross"}], 0),
    ("unknown types", [{"type": "news", "text": "Hans Wolf"}, {"type": "text", "text": "Karl Gross"}, 7, None], 0),
]  # fmt: skip


@pytest.mark.parametrize(("content", "reasoning"), [c[1:] for c in CONTENTS], ids=[c[0] for c in CONTENTS])
def test_blocks_count_by_their_type(content: Any, reasoning: int) -> None:
    message = AIMessage(content if isinstance(content, str) else [b for b in content if isinstance(b, (dict, str))])
    found = response_of(message, Ending())
    assert (found.text, found.reasoning_chars) == ("Karl Gross", reasoning)
    chunk = AIMessageChunk(message.content)
    assert (text_of(chunk), ending_of(chunk).reasoning_chars) == ("Karl Gross", reasoning)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_a_trace_beside_the_content_is_counted_by_length_alone(name: str) -> None:
    found = response_of(AIMessage("Karl Gross", additional_kwargs={name: TRACE}), Ending())
    assert (found.text, found.reasoning_chars) == ("Karl Gross", len(TRACE))


def test_a_marked_refusal_is_no_text() -> None:
    for message in (
        AIMessage("", additional_kwargs={"refusal": "I cannot."}),
        AIMessage([{"type": "refusal", "refusal": "I cannot."}]),
    ):
        found = response_of(message, Ending())
        assert (found.text, found.refusal) == ("", "I cannot.")


@pytest.mark.parametrize(
    ("metadata", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "content_filter"}, "content_filter"),
        ({"finish_reason": "STOP"}, "stop"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"finish_reason": "FinishReason.RECITATION"}, "content_filter"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "refusal"}, "content_filter"),
        ({"stop_reason": "tool_use"}, "tool_calls"),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"done": True, "done_reason": "length"}, "length"),
        ({"status": "completed"}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete"}, "length"),
        ({"finish_reason": "something new"}, "other"),
        ({"finish_reason": None}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_why_a_reply_ended_is_read_in_every_providers_words(metadata: dict[str, Any], finish: str) -> None:
    assert ending_of(AIMessage("a", response_metadata=metadata)).finish == finish


def test_tokens_are_passed_on() -> None:
    usage: Any = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14, "input_token_details": {"cache_read": 4}}
    usage["output_token_details"] = {"reasoning": 3}
    assert ending_of(AIMessage("a", usage_metadata=usage)).usage == Usage(9, 4, 5, 3)


class Blocks(BaseChatModel):
    """Replies with a thinking block and a text block; its chunks hold a few words each."""

    answer: Callable[[str], str]
    metadata: dict[str, Any] = {"stop_reason": "end_turn"}  # noqa: RUF012
    trace: str = TRACE

    @property
    def _llm_type(self) -> str:
        return "blocks"

    def _reply(self, messages: list[BaseMessage]) -> list[Any]:
        text = self.answer("\n".join(str(m.content) for m in messages))
        return [{"type": "thinking", "thinking": self.trace}, {"type": "text", "text": text}]

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        message = AIMessage(self._reply(messages), response_metadata=self.metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any) -> Any:
        thinking, text = self._reply(messages)
        for word in re.findall(r"\S+\s*", thinking["thinking"]):
            yield ChatGenerationChunk(message=AIMessageChunk([{"type": "thinking", "thinking": word, "index": 0}]))
        for word in re.findall(r"\S+\s*", text["text"]):
            yield ChatGenerationChunk(message=AIMessageChunk([{"type": "text", "text": word, "index": 1}]))
        yield ChatGenerationChunk(message=AIMessageChunk("", response_metadata=self.metadata))


def winner(prompt: str) -> str:
    """Whom a passage, or the keywords, call the winner."""
    return "Hans Wolf" if "Hans Wolf won" in prompt else "Karl Gross"


@pytest.mark.parametrize("style", STYLES)
async def test_nine_that_think_outvote_one_liar(style: str) -> None:
    chain = create_robust_documents_chain(Blocks(answer=winner), PROMPT, return_robustness=True)
    answer = await report(chain, style, GIVEN)
    assert answer.text == "Karl Gross"
    assert answer.radius == 3
    assert [g.status for g in answer.groups] == ["supports"] * 9 + ["differs"]
    assert "absent" not in str(answer.to_dict())


@pytest.mark.parametrize("style", STYLES)
async def test_votes_are_read_from_the_answer_and_not_from_the_thinking(style: str) -> None:
    def vote(prompt: str) -> str:
        return "B" if "Hans Wolf won" in prompt else "A"

    llm = Blocks(answer=vote, trace="B? Hans Wolf? Answer: B. No.")
    settings: Any = {"aggregation": "voting", "choices": ["Karl Gross", "Hans Wolf"]}
    answer = await report(
        create_robust_documents_chain(llm, return_robustness=True, **settings),
        style,
        GIVEN,
    )
    assert answer.choice == 0
    assert answer.radius == 3


WRAPPED = [
    lambda llm: llm | StrOutputParser(),
    lambda llm: llm | RunnableLambda(lambda message: {"winner": message.text}),
    lambda llm: (llm | StrOutputParser()).with_retry(),
    lambda llm: llm | RunnableLambda(lambda message: [message.text]),
]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("wrap", WRAPPED, ids=["text", "dict", "with_retry", "list"])
async def test_what_a_parser_behind_the_model_makes_is_what_counts(wrap: Any, style: str) -> None:
    answer = await report(create_robust_documents_chain(wrap(Blocks(answer=winner)), PROMPT, return_robustness=True),
                          style, GIVEN)  # fmt: skip
    assert "Karl Gross" in answer.text
    assert "Hans Wolf" not in answer.text
    assert [g.status for g in answer.groups] == ["supports"] * 9 + ["differs"]


@pytest.mark.parametrize("style", STYLES)
async def test_a_parser_of_json_streams_one_whole_object(style: str) -> None:
    as_json = Blocks(answer=lambda prompt: f'{{"answer": "{winner(prompt)}"}}') | JsonOutputParser()
    answer = await report(
        create_robust_documents_chain(as_json, PROMPT, return_robustness=True, aggregation="keyword", final="always"),
        style,
        GIVEN,
    )
    assert answer.text == '{"answer": "Karl Gross"}'
    assert [g.status for g in answer.groups] == ["supports"] * 9 + ["differs"]


class Completions(BaseLLM):
    """A model of texts, which says in `generation_info` how they ended."""

    finish: str = "length"

    @property
    def _llm_type(self) -> str:
        return "completions"

    def _generate(self, prompts: list[str], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> LLMResult:
        made = [[Generation(text=winner(p), generation_info={"finish_reason": self.finish})] for p in prompts]
        usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
        return LLMResult(generations=made, llm_output={"token_usage": usage})


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Response]:
    """The replies that the chain reads."""
    seen_so_far: list[Response] = []

    def spy(said: Any, seen: Ending) -> Any:
        seen_so_far.append(response := response_of(said, seen))
        return response

    monkeypatch.setattr(calls, "response_of", spy)
    return seen_so_far


@pytest.mark.parametrize("style", ["invoke", "ainvoke"])
@pytest.mark.parametrize("parsed", [False, True])
async def test_how_a_reply_ended_is_known_behind_a_parser_and_of_completions(
    style: str, parsed: bool, found: list[Response]
) -> None:
    for llm in (Completions(), Blocks(answer=winner, metadata={"stop_reason": "max_tokens"})):
        given = llm | StrOutputParser() if parsed else llm
        chain = create_robust_documents_chain(
            given, PROMPT, return_robustness=True, aggregation="keyword", final="always"
        )
        with contextlib.suppress(ModelError):  # a final answer that was cut may be refused
            await report(chain, style, GIVEN)
    assert len(found) >= 20
    assert {response.finish for response in found} == {"length"}
    assert found[0].usage == Usage(7, None, 2, None)


LISTED = [{"token": "Karl", "logprob": -0.5}, {"token": " Gross", "logprob": -0.25}]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"logprobs": {"content": LISTED, "refusal": None}}, (-0.5, -0.25)),
        ({"logprobs": {"tokens": ["Karl", " Gross"], "token_logprobs": [-0.5, -0.25]}}, (-0.5, -0.25)),
        ({"logprobs_result": LISTED}, (-0.5, -0.25)),
        ({"logprobs": {"content": [{"logprob": 5}]}}, None),
        ({"logprobs": "high"}, None),
        ({}, None),
    ],
)
def test_logprobs_are_read_where_the_model_gives_them(metadata: dict[str, Any], expected: Any) -> None:
    message = AIMessage("Karl Gross", response_metadata=metadata)
    assert response_of(message, Ending()).logprobs == expected
    seen = calls.Seen()
    seen.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))
    assert response_of("Karl Gross", seen.ending).logprobs == expected
    assert response_of({"answer": "Karl Gross"}, seen.ending).logprobs is None
    seen.on_llm_end(LLMResult(generations=[[Generation(text="Karl Gross", generation_info=metadata)]]))
    assert response_of("Karl Gross", seen.ending).logprobs == expected
    thought = AIMessage([{"type": "thinking", "thinking": TRACE}, "Karl Gross"], response_metadata=metadata)
    assert response_of(thought, Ending()).logprobs is None
