"""The question of a conversation: its last message. What came before is not read, and the report says so.

Earlier answers come from passages that nobody trusts. Put together with the question, they could turn it.
"""

from __future__ import annotations

from typing import Any

from robustrag_integrations.corpus.documents import valid_text
from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError

_INSTRUCTIONS = frozenset({"system", "developer"})
_ROLES = _INSTRUCTIONS | {"user", "assistant"}


def question_of(messages: Any, limits: Limits) -> tuple[str, tuple[str, ...]]:
    """The question, and what was not read.

    Raises:
        RefusedError: there is no question, or something that is not text.
    """
    if not isinstance(messages, list) or not 1 <= len(messages) <= limits.messages:
        raise _wrong(f"messages must be a list of 1 to {limits.messages} messages")
    roles = [_role(message) for message in messages]
    if roles[-1] != "user":
        raise _wrong("the last message must be the user's: it is the question")
    question = valid_text(_text(messages[-1].get("content")))
    if not question.strip():
        raise _wrong("the last message is empty; ask something")
    if len(question) > limits.question_chars:
        raise _wrong(f"the question has {len(question)} characters, at most {limits.question_chars} are read")
    return question, tuple(_unread(roles[:-1]))


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in _ROLES:
        raise _wrong(f"the role of a message must be one of {', '.join(sorted(_ROLES))}, got {role!r:.40}")
    return role


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong("the content of the last message must be text")
    for part in content:
        if not (isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)):
            raise _wrong("the parts of the last message must be of type text; no images, audio or files are read")
    return "\n".join(part["text"] for part in content)


def _unread(earlier: list[str]) -> list[str]:
    instructions = sum(role in _INSTRUCTIONS for role in earlier)
    turns = len(earlier) - instructions
    notes = []
    if instructions:
        notes.append("ignored: the system or developer message; the server's prompts decide how documents are read")
    if turns:
        notes.append(f"ignored: {turns} earlier messages; the last one alone is the question, so name what it is about")
    return notes


def _wrong(message: str) -> RefusedError:
    return RefusedError(400, message, param="messages")
