"""A prompt's text: all its messages in one, as a prompt is one text to the core, and cut to the context window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.utils import get_tokenizer

from robustrag_integrations.prompts import Prompt

_LONGEST_TOKEN = 8  # characters read per token of room: twice the need of English
_Self = TypeVar("_Self", bound="MessageText")
BETWEEN = "\n\n"  # between two messages


class MessageText(str):
    """All messages as one text that keeps the boundaries between them.

    Attributes:
        messages: role and text of each.
    """

    __slots__ = ("messages",)
    messages: tuple[tuple[MessageRole, str], ...]

    @classmethod
    def of(cls: type[_Self], messages: Sequence[tuple[MessageRole, str]]) -> _Self:
        """Return the text of these messages."""
        made = cls(BETWEEN.join(text for _, text in messages))
        made.messages = tuple(messages)
        return made

    def replaced(self, start: int, end: int, by: str) -> MessageText:
        """Return the messages with the characters from `start` to `end`, all within one of them, replaced."""
        changed, at = [], 0
        for role, text in self.messages:
            inside = at <= start and end <= at + len(text)
            changed.append((role, text[: start - at] + by + text[end - at :] if inside else text))
            at += len(text) + len(BETWEEN)
        return MessageText.of(changed)


def as_messages(prompt: str, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a prompt's messages; a conversation follows the system messages that it starts with."""
    if not isinstance(prompt, MessageText):
        return [*conversation, ChatMessage(role=MessageRole.USER, content=prompt)]
    messages = [ChatMessage(role=role, content=text) for role, text in prompt.messages]
    first = next((i for i, m in enumerate(messages) if m.role != MessageRole.SYSTEM), len(messages))
    return [*messages[:first], *conversation, *messages[first:]]


@dataclass(frozen=True)
class Fitter:
    """Fits prompts into the context window of a `PromptHelper`.

    The room depends on the question and on what surrounds the passages, never on another group; and nothing is ever
    joined or split across groups, which is what `PromptHelper.repack` does.

    Attributes:
        helper: knows window, reserved output and tokenizer.
        llm: whose system prompt takes room as well.
        around: other text that goes out with every prompt.
    """

    helper: PromptHelper
    llm: LLM
    around: str = ""

    def fit(self, prompt: Prompt) -> tuple[Prompt, bool]:
        """Truncate a prompt's passages at the end if need be; return the prompt, and whether it was truncated.

        Raises:
            ValueError: question and instructions leave no room for passages.
        """
        if prompt.context is None:
            return prompt, False
        start, end = prompt.context
        before, context, after = prompt.text[:start], prompt.text[start:end], prompt.text[end:]
        splitter = self._splitter(before + after + self.around)
        if len(context.encode(errors="replace")) <= splitter.chunk_size:  # no token is shorter than a byte
            return prompt, False
        kept = _longest_fitting(context[: splitter.chunk_size * _LONGEST_TOKEN], splitter)
        if len(kept) == len(context):
            return prompt, False
        text = prompt.text
        cut = text.replaced(start, end, kept) if isinstance(text, MessageText) else before + kept + after
        return replace(prompt, text=cut, context=(start, start + len(kept))), True

    def _splitter(self, frame: str) -> TokenTextSplitter:
        try:
            return self.helper.get_text_splitter_given_prompt(PromptTemplate("{frame}", frame=frame), llm=self.llm)
        except ValueError as error:
            raise ValueError(
                f"question and instructions leave no room for passages in the model's window of "
                f"{self.helper.context_window} tokens, of which {self.helper.num_output} are kept for the answer: "
                "shorten the question or the conversation, or pass a larger context window"
            ) from error


def _longest_fitting(text: str, splitter: TokenTextSplitter) -> str:
    """Return the longest prefix of a text that fits a chunk, by bisection.

    The splitter itself would count a text without spaces letter by letter, which makes a hostile one expensive.
    """
    tokenize = getattr(splitter, "_tokenizer", None) or get_tokenizer()
    fits, too_long = 0, len(text) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if len(tokenize(text[:middle])) <= splitter.chunk_size:
            fits = middle
        else:
            too_long = middle
    return text[:fits]
