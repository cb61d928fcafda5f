"""Puts a user's LlamaIndex prompt template where the core expects its own prompts.

Whatever kind of template it is (text, messages, selector, `RichPromptTemplate`), it is filled in with stand-ins only,
and passages, question and keywords take their places in what comes out, character by character. So nothing in them is
read as a template, a message or a block, and a template that would change them is refused.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.prompts.base import SelectorPromptTemplate

from llamaindex_robustrag.prompt_text import BETWEEN, MessageText
from robustrag_integrations.prompts import (
    AGREED_CONTEXT,
    CHOICE_REQUEST,
    SHORT_REQUEST,
    Prompt,
    PromptSet,
    Task,
    agreed_context,
)
from robustrag_integrations.prompts import PromptTemplate as CoreTemplate

VARIABLES = {"context": "context_str", "query": "query_str", "keywords": "keywords_str", "choices": "choices_str"}
USER_KEYS = {"text_qa_template": "isolated", "keyword_prompt": "final"}
_Pieces = tuple[tuple[str, str | None], ...]  # literal text, and the field behind it


@dataclass(frozen=True)
class UserTemplate(CoreTemplate):
    """A user's template, filled in; the body goes into its slot.

    Attributes:
        slot: the field of the template that takes the body: `context`, or `keywords` of a final prompt's own.
        messages: role and pieces of each message; one without a role is the whole prompt.
    """

    slot: str = field(kw_only=True, compare=False)
    messages: tuple[tuple[MessageRole | None, _Pieces], ...] = field(kw_only=True, compare=False)

    @property
    def has_messages(self) -> bool:
        """True if it is more than one text."""
        return not (len(self.messages) == 1 and self.messages[0][0] is None)

    def asking(self, request: str) -> UserTemplate:
        """Return the template with one sentence more, at the end of the last message of the user's."""
        users = [i for i, (role, _) in enumerate(self.messages) if role in (None, MessageRole.USER)]
        last = users[-1] if users else len(self.messages) - 1
        role, pieces = self.messages[last]
        asked = (role, (*pieces, (f"\n\n{request}", None)))
        return replace(self, messages=(*self.messages[:last], asked, *self.messages[last + 1 :]))

    def render(self, **values: str) -> Prompt:
        """Return the messages with the values in their places."""
        body = super().render(**values)
        shown = {**values, self.slot: body.text}
        done: list[tuple[MessageRole | None, str]] = []
        span, before = None, 0
        for role, pieces in self.messages:
            text = ""
            for literal, name in pieces:
                text += literal
                if name == self.slot and body.context is not None:
                    start = before + len(text) + body.context[0]
                    span = (start, start + body.context[1] - body.context[0])
                text += shown.get(name, "") if name is not None else ""
            done.append((role, text))
            before += len(text) + len(BETWEEN)
        if not self.has_messages:
            return Prompt(done[0][1], span)
        text = MessageText.of([(role or MessageRole.USER, text) for role, text in done])
        return Prompt(text, span)


@dataclass(frozen=True)
class UserPrompts:
    """The user's templates.

    Attributes:
        isolated: `text_qa_template`: asked about every group, and at the end with what was agreed on for the documents;
            None for the project's.
        final: `keyword_prompt`: another final prompt, with `keywords_str`; None for `isolated`.
    """

    isolated: BasePromptTemplate | None = None
    final: BasePromptTemplate | None = None

    @property
    def given(self) -> bool:
        """True if there are any."""
        return self.isolated is not None or self.final is not None

    def has_format(self, llm: LLM) -> bool:
        """True if an output parser of the user's says how the answer is written."""
        return self.isolated is not None and chosen(self.isolated, llm).output_parser is not None

    def applied_to(self, shipped: PromptSet, task: Task, llm: LLM, *, whole_answers: bool) -> PromptSet:
        """Return the project's prompts with the user's in their place.

        Args:
            shipped: the project's.
            task: the kind of answer; decides how the agreed keywords are introduced.
            llm: chooses among a selector's templates.
            whole_answers: True if a reply is one vote (consensus): groups are asked for a short answer, and what they
                agree on is worded by the user's prompt.

        Raises:
            TypeError, ValueError: a template that cannot be filled in safely; the message says why.
        """
        changes: dict[str, Any] = {}
        if self.isolated is not None:
            own, name = chosen(self.isolated, llm), "text_qa_template"
            plain = own.model_copy(update={"output_parser": None})  # only the final answer has its format
            isolated = _filled(plain, llm, name, "context", "{context}", ("context",))
            changes["isolated"] = isolated.asking(SHORT_REQUEST) if whole_answers else isolated
            changes["phrases"] = None
            if whole_answers:
                changes["choice"] = isolated.asking(CHOICE_REQUEST)
                changes["wording"] = _filled(own, llm, name, "context", AGREED_CONTEXT, ("agreed",))
            elif shipped.keyword is not None:
                changes["keyword"] = _filled(own, llm, name, "context", agreed_context(task), ("keywords",))
        if self.final is not None:
            final = chosen(self.final, llm)
            changes["keyword"] = _filled(final, llm, "keyword_prompt", "keywords", "{keywords}", ("keywords",))
        return replace(shipped, **changes)


def shown_as_template(template: CoreTemplate) -> PromptTemplate:
    """Return one of the project's prompts as LlamaIndex shows it."""
    return PromptTemplate(template.render(**{name: f"{{{VARIABLES[name]}}}" for name in template.fields}).text)


def chosen(template: BasePromptTemplate, llm: LLM) -> BasePromptTemplate:
    """Return the template that a selector chooses for an LLM."""
    while isinstance(template, SelectorPromptTemplate):
        template = template.select(llm)
    return template


def check_template(template: object, name: str) -> BasePromptTemplate:
    """Check a template, and return it.

    Raises:
        TypeError: it is not one.
    """
    if not isinstance(template, BasePromptTemplate):
        raise TypeError(
            f"{name} must be a prompt template of LlamaIndex, got {type(template).__name__}; write "
            'PromptTemplate("... {context_str} ... {query_str} ...")'
        )
    return template


def _filled(
    template: BasePromptTemplate, llm: LLM, name: str, slot: str, body: str, fields: tuple[str, ...]
) -> UserTemplate:
    stand_ins = {field: f"standin{secrets.token_hex(8)}{field}" for field in VARIABLES}
    values = {variable: stand_ins[field] for field, variable in VARIABLES.items()}
    own = {key for key in template.kwargs if key in values}
    given = {key: value for key, value in values.items() if key not in own or key == VARIABLES[slot]}
    try:
        made = template.format_messages(llm=llm, **given)
    except Exception as error:
        raise ValueError(f"{name} cannot be filled in: {type(error).__name__}: {error}") from error
    messages = tuple((role, _pieces(text, stand_ins)) for role, text in _texts(made, name))
    shown = [field for _, pieces in messages for _, field in pieces if field is not None]
    if shown.count(slot) != 1:
        raise ValueError(
            f"{name} must show {{{VARIABLES[slot]}}} once and as it is, without filters or functions that change it; "
            f"it shows it {shown.count(slot)} times"
        )
    if unused := {"context", "keywords"} & set(shown) - {slot}:
        raise ValueError(f"{name} must not show {', '.join(VARIABLES[field] for field in unused)}")
    if slot == "context" and "query" not in shown and VARIABLES["query"] not in own:
        raise ValueError(f"{name} must show {{query_str}}: without it the question is not asked")
    return UserTemplate("", body, fields, slot=slot, messages=messages)


def _texts(messages: Sequence[ChatMessage], name: str) -> list[tuple[MessageRole | None, str]]:
    """Return role and text of each message; no role for a single user message."""
    found: list[tuple[MessageRole | None, str]] = []
    for message in messages:
        if not all(isinstance(block, TextBlock) for block in message.blocks):
            raise TypeError(f"{name} must consist of text; documents are asked one by one, as text")
        found.append((message.role, message.content or ""))
    alone = len(found) == 1 and found[0][0] == MessageRole.USER
    return [(None, found[0][1])] if alone else found


def _pieces(text: str, stand_ins: Mapping[str, str]) -> _Pieces:
    names = {stand_in: field for field, stand_in in stand_ins.items()}
    parts = re.split("|".join(map(re.escape, names)), text)
    found = re.findall("|".join(map(re.escape, names)), text)
    return tuple(zip(parts, [*(names[one] for one in found), None], strict=True))
