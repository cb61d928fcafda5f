"""Explicit attention masks from positions, for every kind of attention layer of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from robustrag_integrations.models.local.causal_lm import CausalLM

NOWHERE = 2**30  # the position of padding: beyond every token, so that none sees it
_KINDS = ("full_attention", "sliding_attention")
_SLIDING_THROUGHOUT = ("mistral", "mixtral", "phi3", "starcoder2")  # no list of layer kinds: a window holds for all
_IMPLEMENTATIONS = ("sdpa", "eager")


class NoExplicitMasks(Exception):
    """A mask cannot determine which tokens the model's attention sees; the message says why."""


@dataclass(frozen=True)
class MaskRules:
    """Attention masks in the form that a model takes.

    Attributes:
        windows: per kind of attention layer, how far back it sees, in tokens; None for no limit.
        dtype: of the mask.
    """

    windows: Mapping[str, int | None]
    dtype: torch.dtype

    @property
    def plain(self) -> bool:
        """True if every layer sees all tokens before a token, however far back."""
        return not any(self.windows.values())

    @classmethod
    def of(cls, lm: CausalLM) -> MaskRules:
        """Derive the rules from a model's configuration.

        Raises:
            NoExplicitMasks: its attention does something that positions alone do not describe.
        """
        config = lm.config
        implementation = getattr(config, "_attn_implementation", None)
        if implementation not in _IMPLEMENTATIONS:
            raise NoExplicitMasks(f"attention implementation {implementation!r} takes no explicit mask")
        if missing := {"position_ids", lm.cache_argument, "attention_mask"} - lm.accepts:
            raise NoExplicitMasks(f"its forward pass takes no {' and no '.join(sorted(missing))}")
        if getattr(config, "is_encoder_decoder", False):
            raise NoExplicitMasks("it is an encoder-decoder")
        return cls({kind: _window(config, kind) for kind in _kinds(config)}, lm.dtype)

    def mask(self, queries: torch.Tensor, keys: torch.Tensor, visible: torch.Tensor | None = None) -> Any:
        """Build an attention mask as the model takes it; always explicit, whatever the rows hold.

        Args:
            queries: [rows, Q] positions of the tokens that are read now; NOWHERE for padding.
            keys: [rows, K] positions of everything in the cache, those tokens last.
            visible: [Q, C], or [rows, Q, C]: which of the last C columns each token may see, where order alone does not
                decide it, as with branches of a tree side by side. None: everything before it.
        """
        ahead = queries[:, :, None] - keys[:, None, :]
        seen = ahead >= 0
        if visible is not None:
            seen[:, :, keys.shape[1] - visible.shape[-1] :] &= visible
        masks = {k: self._additive(seen if w is None else seen & (ahead < w)) for k, w in self.windows.items()}
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _additive(self, seen: torch.Tensor) -> torch.Tensor:
        hidden = torch.finfo(self.dtype).min
        return torch.zeros_like(seen, dtype=self.dtype).masked_fill_(~seen, hidden)[:, None]


def _kinds(config: Any) -> tuple[str, ...]:
    listed = getattr(config, "layer_types", None)
    if listed:
        if unknown := sorted(set(listed) - set(_KINDS)):
            raise NoExplicitMasks(f"it has layers of the kind {unknown[0]!r}")
        return tuple(sorted(set(listed)))
    if "local" in (getattr(config, "attention_layers", None) or ()):
        raise NoExplicitMasks("it has layers that see a window of columns, wherever its tokens stand in them")
    if getattr(config, "sliding_window", None) is None:
        return ("full_attention",)
    if config.model_type not in _SLIDING_THROUGHOUT:
        raise NoExplicitMasks("it has a sliding window and does not say in which layers")
    return ("sliding_attention",)


def _window(config: Any, kind: str) -> int | None:
    return int(config.sliding_window) if kind == "sliding_attention" else None
