"""Content blocks of messages: text, reasoning and refusals, by the type of each block, never by its place.

OpenAI's chats and Responses, Anthropic's messages, Bedrock, Gemini and LangChain share the names of these types.
Text is what blocks of text hold. Reasoning is counted and dropped. Calls of tools, search results and blocks of unknown
types are no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.replies.reply import entry

_TEXT = ("text", "output_text", "text_delta", "input_text")
_REASONING = (
    "reasoning", "thinking", "redacted_thinking", "reasoning_content", "thinking_delta", "reasoning_summary",
    "summary_text", "reasoning_text", "reasoning.text", "reasoning.summary", "reasoning.encrypted",
)  # fmt: skip
_TOOLS = ("tool_use", "tool_call", "function_call", "custom_tool_call", "server_tool_use")
_HOLDS = (
    "text", "thinking", "reasoning", "reasoning_content", "reasoningContent", "reasoningText", "summary", "content",
)  # fmt: skip
_DEEPEST = 8  # blocks within blocks


@dataclass
class Blocks:
    """The parts of a message's content.

    Attributes:
        text: of its blocks of text.
        refusals: the words of its refusals.
        reasoning_chars: characters of reasoning.
        calls_tools: True if a block calls a tool.
    """

    text: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    reasoning_chars: int = 0
    calls_tools: bool = False

    @property
    def refusal(self) -> str | None:
        """All refusals as one text; None without any."""
        return "".join(self.refusals) if self.refusals else None

    def read(self, content: Any, depth: int = 0) -> None:
        """Sort the blocks of a content by type."""
        if isinstance(content, str):
            self.text.append(content)
        elif isinstance(content, list) and depth < _DEEPEST:
            for block in content:
                self.read(block, depth + 1)
        elif isinstance(content, Mapping):
            self._read_block(content, depth)

    def _read_block(self, block: Mapping[str, Any], depth: int) -> None:
        kind, text = block.get("type"), block.get("text")
        if kind in _REASONING or block.get("thought") is True or "reasoningContent" in block:
            self.reasoning_chars += chars_of(block)
        elif kind == "refusal":
            self.refusals.append(str(block.get("refusal") or ""))
        elif kind == "message":
            self.read(block.get("content"), depth + 1)
        elif kind == "non_standard":
            self.read(block.get("value"), depth + 1)
        elif kind in _TOOLS:
            self.calls_tools = True
        elif (kind in _TEXT or kind is None) and isinstance(text, str):
            if block.get("phase") == "commentary":  # a model's remarks on the way to the answer
                self.reasoning_chars += len(text)
            else:
                self.text.append(text)


def chars_of(reasoning: Any, depth: int = 0) -> int:
    """Count the characters of a reasoning trace in any form; signatures and encrypted traces count as none."""
    if isinstance(reasoning, str):
        return len(reasoning)
    if isinstance(reasoning, list) and depth < _DEEPEST:
        return sum(chars_of(part, depth + 1) for part in reasoning)
    if isinstance(reasoning, Mapping) and depth < _DEEPEST:
        return sum(chars_of(reasoning.get(name), depth + 1) for name in _HOLDS)
    return 0


def usage_of(found: Any) -> Usage:
    """Return the tokens from a `usage`, `token_usage` or `usage_metadata`, be it a mapping or an object."""
    read = _first(found, "prompt_tokens_details", "input_tokens_details", "input_token_details")
    made = _first(found, "completion_tokens_details", "output_tokens_details", "output_token_details")
    cached, reasoning = _count(read, "cached_tokens", "cache_read"), _count(made, "reasoning_tokens", "reasoning")
    cached_names = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_content_token_count")
    return Usage(
        prompt=_count(found, "prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count"),
        cached=cached if cached is not None else _count(found, *cached_names),
        completion=_count(found, "completion_tokens", "output_tokens", "candidates_token_count", "eval_count"),
        reasoning=reasoning if reasoning is not None else _count(found, "thoughts_token_count"),
    )


def _first(holder: Any, *names: str) -> Any:
    return next((found for name in names if (found := entry(holder, name)) is not None), None)


def _count(holder: Any, *names: str) -> int | None:
    values = (entry(holder, name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 53), None)
