"""Chat templates around a message, with reasoning turned off where the template has a switch for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations.reply_text.reasoning import parts_of

_SLOT = "robustrag-prompt-goes-here"
# The switch's names in templates, with its values for off and on. One counts where the two give different prompts.
_SWITCHES: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(
        ("enable_thinking", "thinking", "enable_reasoning", "reasoning", "use_thinking", "think", "add_thinking",
         "is_thinking", "keep_thinking", "with_thinking", "thinking_enabled", "reasoning_enabled"),
        (False, True),
    ),
    "thinking_budget": (0, 4096),
    "thinking_mode": ("off", "on"),
}  # fmt: skip
_EFFORT = "reasoning_effort"
_EFFORTS = ("none", "minimal", "low")  # the lowest one that a template names is taken
_HARMONY = "<|channel|>"


@dataclass(frozen=True)
class ChatFrame:
    """A chat template around a message.

    Attributes:
        before: the text before the message.
        after: the text behind it, the beginning of the reply included.
        options: the template's variables that were set to turn reasoning off.
        opened: the opening mark of reasoning that the frame ends in, so that replies lack it; empty if there is none.
        reasons: why replies begin with reasoning all the same; None where nothing says so.
    """

    before: str
    after: str
    options: Mapping[str, Any] = field(default_factory=dict)
    opened: str = ""
    reasons: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about reasoning that could not be turned off."""
        return (f"the chat template {self.reasons}",) if self.reasons else ()


def chat_frame(tokenizer: Any, given: Mapping[str, Any] | None = None) -> ChatFrame:
    """Render the frame of a tokenizer's chat template.

    The template is rendered around a placeholder, so that it never sees a passage.

    Args:
        tokenizer: the tokenizer.
        given: variables of the template, in place of those that turn reasoning off.

    Raises:
        ValueError: the template rewrites the message.
    """
    source = _source(tokenizer)
    options = {**dict(_switched_off(tokenizer, source)), **(given or {})}
    before, after = _rendered(tokenizer, options)
    opening = parts_of(after)
    opened = after[len(opening.answer) :] if opening.unfinished else ""
    return ChatFrame(before, after, options, opened, _reasons(source, after, opened))


def _source(tokenizer: Any) -> str:
    try:
        return str(tokenizer.get_chat_template())
    except Exception:  # no template, or several
        return str(getattr(tokenizer, "chat_template", "") or "")


def _switched_off(tokenizer: Any, source: str) -> Iterator[tuple[str, Any]]:
    """Yield the switches that this template has, each with its value for no reasoning, or the least."""
    for name, (off, on) in _SWITCHES.items():
        if _names(source, name) and _differ(tokenizer, {name: off}, {name: on}):
            yield name, off
    if _names(source, _EFFORT) and _differ(tokenizer, {_EFFORT: "low"}, {_EFFORT: "high"}):
        yield _EFFORT, next((e for e in _EFFORTS if f"'{e}'" in source or f'"{e}"' in source), "low")


def _names(source: str, variable: str) -> bool:
    return re.search(rf"(?<![\w.]){variable}\b", source) is not None


def _differ(tokenizer: Any, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return _rendered(tokenizer, one) != _rendered(tokenizer, other)
    except Exception:  # it takes other values, which are unknown here
        return False


def _rendered(tokenizer: Any, options: Mapping[str, Any]) -> tuple[str, str]:
    messages = [{"role": "user", "content": _SLOT}]
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    before, slot, after = text.partition(_SLOT)
    if not slot or _SLOT in after:
        raise ValueError("the tokenizer's chat template rewrites the user's message; pass chat=False to go without")
    return before, after


def _reasons(source: str, after: str, opened: str) -> str | None:
    if opened:
        return (
            "begins every reply with reasoning: a reply counts once its reasoning is over, within max_new_tokens; a "
            "switch of the template's own can be given as template_options={...}"
        )
    if _HARMONY in source and "analysis" in source and "final" not in after:
        return (
            "is Harmony's, whose models reason in a channel of their own: a reply counts once it comes to the channel "
            "`final`, within max_new_tokens"
        )
    return None
