"""The widths of prompts, which follow from the settings and the text around the passages, never from a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations.models.base import Role
from robustrag_integrations.models.local.causal_lm import CausalLM
from robustrag_integrations.models.local.encoding import Encoded, PromptEncoder
from robustrag_integrations.prompts import Prompt

_SMALLEST_BUDGET = 16  # tokens of context below which a prompt is useless


@dataclass(frozen=True)
class PromptLayout:
    """Prompts as tokens that fit into the model's window.

    Attributes:
        lm: the model.
        encoder: of its tokenizer.
        max_context_tokens: of each isolated prompt.
        abstentions: the token sequences that spell an abstention behind a prompt.
    """

    lm: CausalLM
    encoder: PromptEncoder
    max_context_tokens: int
    abstentions: tuple[tuple[int, ...], ...]

    def encode(self, prompts: Sequence[Prompt], role: Role, max_new_tokens: int) -> tuple[list[Encoded], list[int]]:
        """Encode prompts; return their tokens, and the most tokens that each could have had with any other passage.

        For isolated prompts that follows from the settings and the text around the passages; for a final prompt, a
        batch of its own, from its length.

        Raises:
            ValueError: the query leaves no room for passages in the context window.
        """
        budget = self.budget(prompts, role, max_new_tokens)
        encoded = self.encoder.encode_all(prompts, budget)
        longest = [
            self.encoder.frame_length(p) + budget if role == "isolated" and p.context else len(e.ids)
            for p, e in zip(prompts, encoded, strict=True)
        ]
        return encoded, longest

    def budget(self, prompts: Sequence[Prompt], role: Role, max_new_tokens: int) -> int:
        """Return the most tokens of passages that each prompt may have."""
        frame = max(map(self.encoder.frame_length, prompts))
        room = self.lm.window - 1 - frame - max_new_tokens - max(map(len, self.abstentions))
        with_context = any(p.context is not None for p in prompts)
        if room < (_SMALLEST_BUDGET if with_context else 0):
            raise ValueError(
                f"the query and instructions take {frame} tokens and the answer up to {max_new_tokens} of the model's "
                f"window of {self.lm.window}; that leaves no room for passages: shorten the query or max_new_tokens"
            )
        return min(room, self.max_context_tokens) if role == "isolated" else room

    @property
    def spelling_room(self) -> int:
        """The columns that scoring the abstention strings takes."""
        return sum(len(tokens) - 1 for tokens in self.abstentions)
