"""Chat templates around a message, with reasoning turned off where the template has a switch for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robustrag_integrations.text.reasoning import parts_of

_SLOT = "robustrag-prompt-goes-here"
# Switches of templates, with values for off and on. One counts where the two give different prompts.
_FLAGS = ("enable_thinking", "thinking", "enable_reasoning", "reasoning", "use_thinking", "think")
_SWITCHES: dict[str, tuple[Any, Any]] = {**dict.fromkeys(_FLAGS, (False, True)), "thinking_budget": (0, 4096)}


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


def chat_frame(tokenizer: Any, given: Mapping[str, Any] | None = None) -> ChatFrame:
    """Render the frame of a tokenizer's chat template, around a placeholder, so that it never sees a passage.

    `given` are variables of the template, in place of those that turn reasoning off.
    """
    try:
        source = str(tokenizer.get_chat_template())
    except Exception:  # no template, or several
        source = str(getattr(tokenizer, "chat_template", "") or "")
    effort = next((e for e in ("none", "minimal") if f"'{e}'" in source or f'"{e}"' in source), "low")
    switches = {**_SWITCHES, "reasoning_effort": (effort, "high")}
    named = {name: values for name, values in switches.items() if re.search(rf"(?<![\w.]){name}\b", source)}
    found = {name: off for name, (off, on) in named.items() if _differ(tokenizer, {name: off}, {name: on})}
    options = {**found, **(given or {})}
    before, after = _rendered(tokenizer, options)
    opening = parts_of(after)
    opened = after[len(opening.answer) :] if opening.unfinished else ""
    reasons = None
    if opened:
        reasons = (
            "begins every reply with reasoning: a reply counts once its reasoning is over, within max_new_tokens; a "
            "switch of the template's own can be given as template_options={...}"
        )
    elif "<|channel|>" in source and "analysis" in source and "final" not in after:
        reasons = (
            "is Harmony's, whose models reason in a channel of their own: a reply counts once it comes to the channel "
            "`final`, within max_new_tokens"
        )
    return ChatFrame(before, after, options, opened, reasons)


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
