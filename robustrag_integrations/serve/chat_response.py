"""Answers in the shape of OpenAI's chat completions, with the report in `robustrag`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import plain
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.answers.usage import Spending
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.errors import call_failure

SCHEMA = "robustrag/serve/1"


class ChatResponse:
    """The objects of one response, which share an id and a time.

    Args:
        model: the name that was asked for.
    """

    def __init__(self, model: str) -> None:
        self._common = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def completion(self, answer: RobustAnswer, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {
            **self._common,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_of(answer.spending),
            "robustrag": report,
        }

    def piece(self, text: str, *, is_first: bool) -> dict[str, Any]:
        """Return a piece of a streamed answer."""
        return self._chunk({"role": "assistant", "content": text} if is_first else {"content": text})

    def last(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the end of a streamed answer."""
        return {**self._chunk({}, "stop"), "robustrag": report}

    def usage(self, spending: Spending) -> dict[str, Any]:
        """Return the token counts of a streamed answer, for clients that asked for them."""
        return {**self._common, "object": "chat.completion.chunk", "choices": [], "usage": usage_of(spending)}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._common, "object": "chat.completion.chunk", "choices": [choice]}


def usage_of(spending: Spending) -> dict[str, Any] | None:
    """Return the tokens of all calls of an answer; None where a call did not tell."""
    total = spending.total
    if total.prompt is None or total.completion is None:
        return None
    return {
        "prompt_tokens": total.prompt,
        "completion_tokens": total.completion,
        "total_tokens": total.prompt + total.completion,
        **({} if total.cached is None else {"prompt_tokens_details": {"cached_tokens": total.cached}}),
        **({} if total.reasoning is None else {"completion_tokens_details": {"reasoning_tokens": total.reasoning}}),
    }


def report_of(answer: RobustAnswer, passages: Sequence[Passage], notes: Sequence[str]) -> dict[str, Any]:
    """Return the extension field: the answer's guarantee, and each group's reply. It holds no passage's text.

    Args:
        answer: the answer.
        passages: all that was read, best first; the positions of groups and citations count in it, from 0.
        notes: warnings of the server's own.
    """
    report = answer.to_dict()
    for group in report["groups"]:
        if group["error"]:  # its words may quote the group's passages, and a warning its words
            short = call_failure(group["error"])
            quoted = printable(redacted(group["error"]), 200)
            report["warnings"] = [warning.replace(quoted, short) for warning in report["warnings"]]
            group["error"] = short
    return {
        "schema": SCHEMA,
        "abstained": answer.abstained,
        "radius": answer.radius,
        "radius_unit": answer.radius_unit,
        "radius_by_tier": answer.radius_by_tier,
        "sole_source": answer.sole_source,
        "dissent": report["dissent"],
        "warnings": [*notes, *report["warnings"]],
        "citations": [plain(citation) for citation in answer.citations],
        "passages": [{"id": p.id, "source": p.source} for p in passages],
        "answer": report,
    }
