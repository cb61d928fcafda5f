"""A lean Llama for training on a CPU, and its export as a standard `LlamaForCausalLM`.

The arithmetic is that of `transformers`' Llama (RMSNorm, rotary positions, SwiGLU, biased attention, tied embeddings).
What is the project's own is how the weights start: small data teaches a small transformer to look things up only after
it has found "previous token" and "same content" heads by chance, so those heads are there from the first step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Small beside what heads add to the stream, and small logits: an untrained model should not insist on repeating tokens.
_EMBEDDING_SCALE = 0.5
_LOGIT_SCALE = 0.12


@dataclass(frozen=True)
class ReaderConfig:
    """Shape of the reader."""

    vocab_size: int
    width: int = 192
    layers: int = 5
    heads: int = 4
    feed_forward: int = 384
    rope_theta: float = 1e6
    norm_eps: float = 1e-5
    max_positions: int = 2048

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads


@dataclass(frozen=True)
class Batch:
    """Rows of packed prompts, padded to one length; shapes [rows, length] unless said otherwise.

    Attributes:
        tokens: token ids.
        positions: rotary positions; every branch of a row continues where the row's shared prefix ended.
        mask: additive attention mask, [rows, 1, length, length].
        predict: indices into the flattened rows of the positions whose next token is learned, [n].
        targets: those next tokens, [n].
    """

    tokens: Tensor
    positions: Tensor
    mask: Tensor
    predict: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


class Block(nn.Module):
    """One transformer layer. Query, key and value share one matrix, and so do gate and up: fewer, larger products."""

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        d, f = config.width, config.feed_forward
        self.heads = config.heads
        self.eps = config.norm_eps
        self.norm_attention = nn.Parameter(torch.ones(d))
        self.norm_feed_forward = nn.Parameter(torch.ones(d))
        self.qkv = nn.Parameter(torch.randn(3 * d, d) / math.sqrt(d))
        self.qkv_bias = nn.Parameter(torch.zeros(3 * d))
        shrink = 1 / math.sqrt(2 * config.layers)
        self.out = nn.Parameter(torch.randn(d, d) * shrink / math.sqrt(d))
        self.out_bias = nn.Parameter(torch.zeros(d))
        self.gate_up = nn.Parameter(torch.randn(2 * f, d) / math.sqrt(d))
        self.down = nn.Parameter(torch.randn(d, f) * shrink / math.sqrt(f))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """[rows, length, width] to the same shape."""
        rows, length, width = x.shape
        normed = F.rms_norm(x, (width,), self.norm_attention, self.eps)
        qkv = F.linear(normed, self.qkv, self.qkv_bias).view(rows, length, 3 * self.heads, width // self.heads)
        qk, v = qkv.transpose(1, 2).split((2 * self.heads, self.heads), dim=1)
        q, k = _rotate(qk, cos, sin).chunk(2, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(rows, length, width)
        x = x + F.linear(mixed, self.out, self.out_bias)
        normed = F.rms_norm(x, (width,), self.norm_feed_forward, self.eps)
        gate, up = F.linear(normed, self.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions on [rows, heads, length, head width]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Reader(nn.Module):
    """The language model."""

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(_EMBEDDING_SCALE * torch.randn(config.vocab_size, config.width))
        self.norm = nn.Parameter(torch.full((config.width,), _LOGIT_SCALE))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))

    @property
    def layers(self) -> list[Block]:
        """The transformer layers, first to last."""
        return cast("list[Block]", list(self.blocks))

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Final hidden states, [rows, length, width]."""
        angles = positions[..., None].float() * rotary_frequencies(self.config).to(tokens.device)
        angles = torch.cat((angles, angles), -1)[:, None]
        cos, sin = angles.cos(), angles.sin()
        x = F.embedding(tokens, self.embedding)
        for block in self.layers:
            x = block(x, cos, sin, mask)
        return F.rms_norm(x, (self.config.width,), self.norm, self.config.norm_eps)

    def predictions(self, batch: Batch) -> Tensor:
        """Logits at the positions to be learned, [n, vocabulary]."""
        hidden = self(batch.tokens, batch.positions, batch.mask)
        return F.linear(hidden.reshape(-1, self.config.width)[batch.predict], self.embedding)


def rotary_frequencies(config: ReaderConfig) -> Tensor:
    """Rotary frequencies in radians per token, [head width / 2], as `transformers` computes them."""
    exponents = torch.arange(0, config.head_width, 2, dtype=torch.int64).float() / config.head_width
    return 1.0 / (config.rope_theta**exponents)


def to_transformers(model: Reader) -> dict[str, Tensor]:
    """The weights under the names of `transformers`' `LlamaForCausalLM`."""
    weights = {"model.embed_tokens.weight": model.embedding, "model.norm.weight": model.norm}
    for i, block in enumerate(model.layers):
        layer = f"model.layers.{i}"
        for name, weight, bias in zip("qkv", block.qkv.chunk(3), block.qkv_bias.chunk(3), strict=True):
            weights[f"{layer}.self_attn.{name}_proj.weight"] = weight
            weights[f"{layer}.self_attn.{name}_proj.bias"] = bias
        weights[f"{layer}.self_attn.o_proj.weight"] = block.out
        weights[f"{layer}.self_attn.o_proj.bias"] = block.out_bias
        gate, up = block.gate_up.chunk(2)
        weights[f"{layer}.mlp.gate_proj.weight"] = gate
        weights[f"{layer}.mlp.up_proj.weight"] = up
        weights[f"{layer}.mlp.down_proj.weight"] = block.down
        weights[f"{layer}.input_layernorm.weight"] = block.norm_attention
        weights[f"{layer}.post_attention_layernorm.weight"] = block.norm_feed_forward
    return {name: weight.detach().clone().contiguous() for name, weight in weights.items()}


def read_exported(folder: Path) -> dict[str, Tensor]:
    """The weights of an exported reader under the names of `Reader`, in single precision."""
    from safetensors.torch import load_file

    theirs = {name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()}
    mine = {"embedding": theirs["model.embed_tokens.weight"], "norm": theirs["model.norm.weight"]}
    for i in range(sum(name.endswith(".down_proj.weight") for name in theirs)):
        layer, block = f"model.layers.{i}", f"blocks.{i}"
        mine[f"{block}.qkv"] = torch.cat([theirs[f"{layer}.self_attn.{n}_proj.weight"] for n in "qkv"])
        mine[f"{block}.qkv_bias"] = torch.cat([theirs[f"{layer}.self_attn.{n}_proj.bias"] for n in "qkv"])
        mine[f"{block}.out"] = theirs[f"{layer}.self_attn.o_proj.weight"]
        mine[f"{block}.out_bias"] = theirs[f"{layer}.self_attn.o_proj.bias"]
        mine[f"{block}.gate_up"] = torch.cat([theirs[f"{layer}.mlp.{n}_proj.weight"] for n in ("gate", "up")])
        mine[f"{block}.down"] = theirs[f"{layer}.mlp.down_proj.weight"]
        mine[f"{block}.norm_attention"] = theirs[f"{layer}.input_layernorm.weight"]
        mine[f"{block}.norm_feed_forward"] = theirs[f"{layer}.post_attention_layernorm.weight"]
    return mine
