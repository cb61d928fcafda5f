"""The answer as a message of LangChain, with its radius, and citations as standard content blocks have them."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.block_translators import register_translator
from langchain_core.messages.content import Citation, ContentBlock

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.citations import last_mention

_PROVIDER = "robustrag"


def answer_fields(text: str, answer: RobustAnswer) -> dict[str, Any]:
    """Return the fields of a message with this text besides its content.

    `additional_kwargs["robustness"]` has `answer` (without markers), `radius`, `abstained`, the `origins` that support
    it, and `citations`, which are the `annotations` of the message's one block of text (`content_blocks`).
    """
    citations = _citations(text, answer)
    told = {
        "answer": answer.text,
        "radius": answer.radius,
        "abstained": answer.abstained,
        "origins": list(dict.fromkeys(name for c in answer.citations for name in c.origins or c.passage_ids)),
        "citations": citations,
    }
    return {"additional_kwargs": {"robustness": told}, "response_metadata": {"model_provider": _PROVIDER}}


def answer_message(text: str, answer: RobustAnswer, id: str | None = None) -> AIMessage:
    """Return the answer, shown as this text, as a message."""
    return AIMessage(text, id=id, **answer_fields(text, answer))


def _citations(text: str, answer: RobustAnswer) -> list[Citation]:
    """Return one citation for each origin of a group that supports the answer: where in the text its words stand."""
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
    told = message.additional_kwargs.get("robustness")
    annotations = told.get("citations", []) if isinstance(told, dict) else []
    block = {"type": "text", "text": message.text, **({"annotations": annotations} if annotations else {})}
    return [cast("ContentBlock", block)]


register_translator(_PROVIDER, _blocks, _blocks)
