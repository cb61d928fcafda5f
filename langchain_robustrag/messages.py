"""The answer as a message of LangChain, with its radius, and citations as standard content blocks have them.

Every message of ours carries in `additional_kwargs["robustness"]` what it is, `for_prompt` among it: the text that
another prompt may hold. So a history can be put into a prompt wherever it was stored (`for_prompts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.block_translators import register_translator
from langchain_core.messages.content import Citation, ContentBlock

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.citations import last_mention

MARK = "robustness"
_PROVIDER = "robustrag"
_KEPT = ("for_prompt", "radius", "abstained", "decided_by")  # of a mark in a prompt: no word that a source chose


def answer_fields(text: str, answer: RobustAnswer) -> dict[str, Any]:
    """Return the fields of a message with this text besides its content.

    `additional_kwargs["robustness"]` has `answer` (without markers), `for_prompt`, `radius`, `abstained`, `decided_by`,
    the `origins` that support it, and `citations`, the `annotations` of its one block of text (`content_blocks`).
    """
    told = {
        "answer": answer.text,
        **_mark(answer),
        "origins": list(dict.fromkeys(name for c in answer.citations for name in c.origins or c.passage_ids)),
        "citations": _citations(text, answer),
    }
    return {"additional_kwargs": {MARK: told}, "response_metadata": {"model_provider": _PROVIDER}}


def _mark(answer: RobustAnswer) -> dict[str, Any]:
    known = (answer.for_prompt().text, answer.radius, answer.abstained, answer.decided_by)
    return dict(zip(_KEPT, known, strict=True))


def answer_message(text: str, answer: RobustAnswer, id: str | None = None) -> AIMessage:
    """Return the answer, shown as this text, as a message."""
    return AIMessage(text, id=id, **answer_fields(text, answer))


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


def _citations(text: str, answer: RobustAnswer) -> list[Citation]:
    """Return one citation for each origin of a source that supports the answer: where in the text its words stand."""
    found: list[Citation] = []
    for cited in answer.citations:
        spans = [span for words in cited.words if (span := last_mention(words, text))]
        start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, len(text)))
        for name in cited.origins or cited.passage_ids:
            place = Citation(type="citation", title=printable(name, 200), start_index=start, end_index=end)
            if name.startswith(("http://", "https://")) and name.isprintable():
                place["url"] = name
            place["extras"] = {"number": cited.number, "positions": list(cited.positions)}
            found.append(place)
    return found


def _blocks(message: BaseMessage) -> list[ContentBlock]:
    """Return an answer's content as standard blocks."""
    annotations = (mark_of(message) or {}).get("citations", [])
    block = {"type": "text", "text": message.text, **({"annotations": annotations} if annotations else {})}
    return [cast("ContentBlock", block)]


register_translator(_PROVIDER, _blocks, _blocks)
