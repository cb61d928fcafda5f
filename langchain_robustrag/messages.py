"""The answer as a message of LangChain, with its radius.

Every message of ours carries in `additional_kwargs["robustness"]` what it is, `for_prompt` among it: the text that
another prompt may hold. So a history can be put into a prompt wherever it was stored (`for_prompts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from robustrag_integrations.answers.answer import RobustAnswer

MARK = "robustness"
_KEPT = ("for_prompt", "radius", "abstained", "decided_by")  # of a mark in a prompt: no word that a source chose


def answer_fields(answer: RobustAnswer) -> dict[str, Any]:
    """Return the fields of an answer's message besides its content.

    `additional_kwargs["robustness"]` has `answer` (without markers), `for_prompt`, `radius`, `abstained`, `decided_by`
    and the `origins` that support it.
    """
    origins = list(dict.fromkeys(name for c in answer.citations for name in c.origins or c.passage_ids))
    return {"additional_kwargs": {MARK: {"answer": answer.text, **_mark(answer), "origins": origins}}}


def _mark(answer: RobustAnswer) -> dict[str, Any]:
    known = (answer.for_prompt().text, answer.radius, answer.abstained, answer.decided_by)
    return dict(zip(_KEPT, known, strict=True))


def answer_message(text: str, answer: RobustAnswer, id: str | None = None) -> AIMessage:
    """Return the answer, shown as this text, as a message."""
    return AIMessage(text, id=id, **answer_fields(answer))


def history_message(answer: RobustAnswer) -> AIMessage:
    """Return an answer as a chat history holds it: with a text that prompts may hold, and no name of a source.

    Examples:
        ```python
        chat = RunnableWithMessageHistory(
            rag.assign(reply=lambda result: history_message(result["robustness"])),
            history_of,
            input_messages_key="input",
            history_messages_key="chat_history",
            output_messages_key="reply",
        )
        ```
    """
    said = answer.for_prompt()
    return AIMessage(said.text, additional_kwargs={MARK: _mark(said)})


def mark_of(message: object) -> Mapping[str, Any] | None:
    """Return what a message of ours says that it is; None for any other."""
    found = message.additional_kwargs.get(MARK) if isinstance(message, BaseMessage) else None
    return found if isinstance(found, Mapping) and isinstance(found.get("for_prompt"), str) else None


def marked(text: str) -> dict[str, Any]:
    """Return the `additional_kwargs` of a message of ours of which prompts may hold this text."""
    return {MARK: {"for_prompt": text}}


def for_prompts(messages: Sequence[BaseMessage], shown: Mapping[str, BaseMessage] | None = None) -> list[BaseMessage]:
    """Return a conversation as prompts may hold it: answers for people are abstentions, and no source is named.

    Args:
        messages: the conversation.
        shown: texts that people were shown, each with the message that a history holds of it; a program may have stored
            the text alone.
    """
    return [_for_prompt(message, shown or {}) for message in messages]


def is_trusted(message: BaseMessage) -> bool:
    """True if no untrusted source chose a word of a message of ours as prompts hold it: a trusted answer, or one that
    is an abstention there."""
    mark = mark_of(message)
    if mark is None or "decided_by" not in mark:
        return False
    answer, held = mark.get("answer", mark["for_prompt"]), mark["for_prompt"]
    if message.text not in (answer, held):
        return False
    return mark["decided_by"] == "trusted" or bool(mark.get("abstained")) or held != answer


def _for_prompt(message: BaseMessage, shown: Mapping[str, BaseMessage]) -> BaseMessage:
    mark = mark_of(message)
    if mark is None:
        held = shown.get(message.text) if isinstance(message, AIMessage) else None
        return message if held is None else held.model_copy(update={"id": message.id})
    kept = {name: mark[name] for name in _KEPT if name in mark}
    if mark.get("answer", held := mark["for_prompt"]) != held:
        kept |= {"radius": 0, "abstained": True, "decided_by": None}
    if kept == mark and message.content == held:
        return message
    return message.model_copy(update={"content": held, "additional_kwargs": {**message.additional_kwargs, MARK: kept}})
