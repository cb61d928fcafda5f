"""Warnings about what a conversation means for an answer's radius: one wording for all integrations."""

from __future__ import annotations

from robustrag_integrations._util.words import count_of


def shown_warnings(answers: int, tool_results: int) -> tuple[str, ...]:
    """Return warnings where every prompt shows a conversation.

    Args:
        answers: number of earlier answers that are in it.
        tool_results: number of messages that are what a tool returned.
    """
    found = []
    if answers:
        found.append(
            f"every prompt shows {count_of(answers, 'earlier answer')}: the radius is about the passages of this "
            "question, given what was answered before"
        )
    if tool_results:
        found.append(
            f"every prompt shows {count_of(tool_results, 'tool result')}, not isolated: the radius does not count what "
            "tools say; leave them out of the conversation"
        )
    return tuple(found)


def condensed_warnings(answers: int, tool_results: int) -> tuple[str, ...]:
    """Return warnings where the question was condensed from a conversation; arguments as in `shown_warnings`."""
    shown = [count_of(n, what) for n, what in ((answers, "earlier answer"), (tool_results, "tool result")) if n]
    if not shown:
        return ()
    return (
        f"the question was condensed from a conversation with {' and '.join(shown)}: the radius is about the "
        "passages of this question, given what was said there",
    )
