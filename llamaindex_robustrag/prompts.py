"""A user's prompt template where the core has its own, a prompt's messages as one text, and room in the window.

Whatever kind of template it is (text, messages, selector, `RichPromptTemplate`), it is filled in with stand-ins only,
and passages and question take their places in what comes out, character by character. So nothing in them is read as a
template, a message or a block, and a template that would change them is refused.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.prompts.base import SelectorPromptTemplate
from llama_index.core.utils import get_tokenizer

from robustrag_integrations.text.prompts import (
    AGREED_CONTEXT,
    Prompt,
    PromptSet,
    Task,
    agreed_context,
)
from robustrag_integrations.text.prompts import PromptTemplate as CoreTemplate

_VARIABLES = {"context": "context_str", "query": "query_str", "choices": "choices_str"}
_BETWEEN = "\n\n"  # between two messages
_LONGEST_TOKEN = 8  # characters read per token of room: twice the need of English


class MessageText(str):
    """All messages of a prompt as one text, which is what a prompt is to the core, with the role and text of each."""

    messages: tuple[tuple[MessageRole, str], ...]

    @classmethod
    def joined(cls, messages: Sequence[tuple[MessageRole, str]]) -> MessageText:
        """Return the text of these messages."""
        made = cls(_BETWEEN.join(text for _, text in messages))
        made.messages = tuple(messages)
        return made

    def replaced(self, start: int, end: int, by: str) -> MessageText:
        """Return the messages with the characters from `start` to `end`, all within one of them, replaced."""
        changed, at = [], 0
        for role, text in self.messages:
            inside = at <= start and end <= at + len(text)
            changed.append((role, text[: start - at] + by + text[end - at :] if inside else text))
            at += len(text) + len(_BETWEEN)
        return MessageText.joined(changed)


def as_messages(prompt: str, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a prompt's messages; a conversation follows the system messages that it starts with."""
    if not isinstance(prompt, MessageText):
        return [*conversation, ChatMessage(role=MessageRole.USER, content=prompt)]
    messages = [ChatMessage(role=role, content=text) for role, text in prompt.messages]
    first = next((i for i, m in enumerate(messages) if m.role != MessageRole.SYSTEM), len(messages))
    return [*messages[:first], *conversation, *messages[first:]]


@dataclass(frozen=True)
class UserTemplate(CoreTemplate):
    """A user's template, filled in; the core's body goes where the passages go.

    Attributes:
        messages: per message its role, and its literal texts, each with the field behind it.
        is_text: True if it is a single text without a role.
    """

    messages: tuple[tuple[MessageRole, tuple[tuple[str, str | None], ...]], ...] = field(kw_only=True, compare=False)
    is_text: bool = field(kw_only=True)

    @property
    def literal(self) -> str:
        """What it shows besides passages and question."""
        return " ".join(text for _, pieces in self.messages for text, _ in pieces)

    def asking(self, request: str, *, leads: bool = False) -> UserTemplate:
        """Return the template with one sentence more, at the end of the last message of the user's.

        One that `leads` stands before the text: in the system message that comes first, or else in that last message.
        """
        users = [i for i, (role, _) in enumerate(self.messages) if role == MessageRole.USER]
        place = users[-1] if users else len(self.messages) - 1
        if leads and self.messages[0][0] == MessageRole.SYSTEM:
            place = 0
        role, pieces = self.messages[place]
        asked = ((f"{request}\n\n", None), *pieces) if leads else (*pieces, (f"\n\n{request}", None))
        return replace(self, messages=(*self.messages[:place], (role, asked), *self.messages[place + 1 :]))

    def render(self, **values: str) -> Prompt:
        """Return the messages with the values in their places."""
        body = super().render(**values)
        shown = {**values, "context": body.text}
        done: list[tuple[MessageRole, str]] = []
        span, before = None, 0
        for role, pieces in self.messages:
            text = ""
            for literal, name in pieces:
                text += literal
                if name == "context" and body.context is not None:
                    start = before + len(text) + body.context[0]
                    span = (start, start + body.context[1] - body.context[0])
                text += shown.get(name, "") if name is not None else ""
            done.append((role, text))
            before += len(text) + len(_BETWEEN)
        return Prompt(done[0][1] if self.is_text else MessageText.joined(done), span)


def with_user_prompt(
    shipped: PromptSet, template: BasePromptTemplate, llm: LLM, task: Task, request: str, silence_request: str
) -> PromptSet:
    """Return the project's prompts with the user's in their place; raise if it cannot be filled in safely.

    `request`: what is added to it where whole answers or items are counted (consensus); `silence_request`: what is put
    before it about trusted nodes, "none" for nothing.
    """
    own = chosen(template, llm)
    plain = own.model_copy(update={"output_parser": None})  # only the final answer has its format
    isolated = _filled(plain, llm, "{context}", "context")
    trusted = isolated if silence_request == "none" else isolated.asking(silence_request, leads=True)
    changes: dict[str, Any] = {"isolated": isolated, "phrases": None, "trusted": trusted}
    if request:
        changes["isolated"] = isolated.asking(request)
        changes["object"] = _filled(own, llm, AGREED_CONTEXT, "agreed")
    elif shipped.keyword is not None:
        changes["keyword"] = _filled(own, llm, agreed_context(task), "keywords")
    return replace(shipped, **changes)


def stock_template(shipped: CoreTemplate) -> PromptTemplate:
    """Return a prompt of the core as a template of LlamaIndex."""
    return PromptTemplate(shipped.render(**{name: f"{{{variable}}}" for name, variable in _VARIABLES.items()}).text)


def chosen(template: BasePromptTemplate, llm: LLM) -> BasePromptTemplate:
    """Return the template that a selector chooses for an LLM."""
    while isinstance(template, SelectorPromptTemplate):
        template = template.select(llm)
    return template


def _filled(template: BasePromptTemplate, llm: LLM, body: str, body_field: str) -> UserTemplate:
    stand_ins = {name: f"standin{secrets.token_hex(8)}{name}" for name in _VARIABLES}
    own = set(template.kwargs) & {"query_str", "choices_str"}  # partial values
    given = {variable: stand_ins[name] for name, variable in _VARIABLES.items() if variable not in own}
    try:
        made = template.format_messages(llm=llm, **given)
    except Exception as error:
        raise ValueError(f"text_qa_template cannot be filled in: {type(error).__name__}: {error}") from error
    if not all(isinstance(block, TextBlock) for message in made for block in message.blocks):
        raise TypeError("text_qa_template must consist of text; documents are asked one by one, as text")
    names = {stand_in: name for name, stand_in in stand_ins.items()}
    cuts = re.compile("|".join(names))
    messages = []
    for message in made:
        text = message.content or ""
        fields = [*(names[one] for one in cuts.findall(text)), None]
        messages.append((message.role, tuple(zip(cuts.split(text), fields, strict=True))))
    shown = [name for _, pieces in messages for _, name in pieces]
    if shown.count("context") != 1:
        raise ValueError(
            "text_qa_template must show {context_str} once and as it is, without filters or functions that change it; "
            f"it shows it {shown.count('context')} times"
        )
    if "query" not in shown and "query_str" not in own:
        raise ValueError("text_qa_template must show {query_str}: without it the question is not asked")
    is_text = len(messages) == 1 and messages[0][0] == MessageRole.USER
    return UserTemplate("", body, (body_field,), messages=tuple(messages), is_text=is_text)


@dataclass(frozen=True)
class Fitter:
    """Fits prompts into the context window of a `PromptHelper`.

    The room depends on the question and on what surrounds the passages (`around`, and the LLM's system prompt), never
    on another source; and nothing is ever joined or split across sources, which is what `PromptHelper.repack` does.
    """

    helper: PromptHelper
    llm: LLM
    around: str

    def fitted(self, prompt: Prompt) -> tuple[Prompt, bool]:
        """Return the prompt with as much of its passages as fits, from their beginning; True if some is left out."""
        if prompt.context is None:
            return prompt, False
        text, (start, end) = prompt.text, prompt.context
        context = text[start:end]
        frame = PromptTemplate("{frame}", frame=text[:start] + text[end:] + self.around)
        splitter = self.helper.get_text_splitter_given_prompt(frame, llm=self.llm)
        if len(context.encode(errors="replace")) <= splitter.chunk_size:  # no token is shorter than a byte
            return prompt, False
        fits = max(_longest_fitting(context[: splitter.chunk_size * _LONGEST_TOKEN], splitter), 1)
        if fits >= len(context):
            return prompt, False
        kept = context[:fits]
        other = text.replaced(start, end, kept) if isinstance(text, MessageText) else text[:start] + kept + text[end:]
        return replace(prompt, text=other, context=(start, start + fits)), True


def _longest_fitting(text: str, splitter: TokenTextSplitter) -> int:
    """Return the length of the longest prefix of a text that fits a chunk, by bisection.

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
    return fits
