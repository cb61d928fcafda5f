"""What a conversation means for the radius of an answer: one wording for all integrations."""

from __future__ import annotations


def shown_warnings(answers: int, tool_results: int) -> tuple[str, ...]:
    """What to say where every prompt shows a conversation.

    Args:
        answers: how many earlier answers are in it.
        tool_results: how many messages are what a tool returned.
    """
    found = []
    if answers:
        found.append(
            f"{answers} earlier answers are part of every prompt: the radius is about the passages of this question, "
            "given those answers"
        )
    if tool_results:
        found.append(
            f"{tool_results} results of tools are part of every prompt, not isolated: the radius does not count what "
            "they say; leave them out of the conversation"
        )
    return tuple(found)


def condensed_warnings(answers: int, tool_results: int) -> tuple[str, ...]:
    """What to say where the question was made from a conversation; the arguments are those of `shown_warnings`."""
    counted = [f"{n} {what}" for n, what in ((answers, "earlier answers"), (tool_results, "results of tools")) if n]
    if not counted:
        return ()
    return (
        f"the question was condensed from a conversation with {' and '.join(counted)}: the radius is about the "
        "passages of this question, given what was said there",
    )
