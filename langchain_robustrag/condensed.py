"""A conversation: what a history-aware retriever makes of it, and what it means where prompts show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, ToolMessage

from langchain_robustrag.callbacks import HeardQuery
from langchain_robustrag.questions import messages_of, usual_question
from robustrag_integrations.conversations import shown_warnings

STANDALONE = "standalone_question"


def history_names(inputs: Mapping[str, Any]) -> frozenset[str]:
    """The inputs that hold a conversation."""
    return frozenset(name for name, value in inputs.items() if _is_conversation(value))


def unseen_conversation(inputs: Mapping[str, Any], shown: Collection[str]) -> list[str]:
    """What to say where a conversation is given that the prompt does not show.

    Either the question was made from it, or it is part of nothing that is asked.

    Args:
        inputs: without the documents.
        shown: the inputs that the prompt shows.
    """
    unseen = sorted(history_names(inputs) - {"messages"} - set(shown))
    if not unseen:
        return []
    if STANDALONE in inputs:
        return [
            f"the question was condensed from the conversation in {unseen[0]!r}: the radius is about the passages of "
            "this question, given what was said before"
        ]
    return [
        f"the prompt does not show the conversation in {unseen[0]!r}, so a question that refers to it cannot be "
        "understood: show it in the prompt, or have create_history_aware_retriever condense the question and pass its "
        "retriever to create_robust_retrieval_chain"
    ]


def shown_conversation(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say of the messages that the prompts show: earlier answers, and what tools returned.

    Args:
        inputs: what the prompts show, without the documents.
    """
    said = [message for value in inputs.values() for message in _messages(value)]
    answers = sum(isinstance(message, AIMessage) and bool(message.text) for message in said)
    return shown_warnings(answers, sum(isinstance(message, (ToolMessage, FunctionMessage)) for message in said))


def standing_alone(inputs: Mapping[str, Any], heard: HeardQuery) -> str | None:
    """The question that was asked in place of the user's, of which the conversation is a part; None if none was."""
    if not history_names(inputs) or len(heard.queries) != 1:
        return None
    [query] = heard.queries
    return query if query.strip() and query != usual_question(inputs) else None


def _messages(value: Any) -> list[BaseMessage]:
    """The messages of an input; none if it is no conversation."""
    return messages_of(value) if isinstance(value, BaseMessage) or _is_conversation(value) else []


def _is_conversation(value: Any) -> bool:
    """Whether it is messages: objects, pairs of role and text, or dicts of them."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not value:
        return False
    return all(
        isinstance(item, BaseMessage)
        or (isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item))
        or (isinstance(item, Mapping) and "role" in item and "content" in item)
        for item in value
    )
