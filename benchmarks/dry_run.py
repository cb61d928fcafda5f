"""What the benchmarks of the 7B shape would take on an H200: counted on a small model, derived, never measured.

The benchmarks run as they are, on a small model in half precision, so through the code that runs on a GPU. Each of its
forward passes is charged what a pass of that shape costs the 7B model: the time to read the weights and the keys and
values, or the time to compute, whichever is longer. The rest (kernel launches, Python, sampling) is charged nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.timing import Clock
from benchmarks.workload import random_llama
from robustrag_integrations.models.local.joint import JointCache

BYTES_PER_SECOND = 4.3e12  # of an H200's memory, as read in practice
FLOPS = 790e12  # of its products in bfloat16
SINGLE_FLOPS = 67e12  # and in float32
_GIB = 2**30


@dataclass(frozen=True)
class Shape:
    """A model by its sizes; `of` takes them from a network, which may be on `meta`."""

    products: int  # parameters of the layers' products
    head: int  # parameters of the last product
    bytes: int  # of all weights but the embeddings, of which a pass reads a few rows
    layers: int
    kv_bytes: int  # keys and values of one token
    heads_width: int  # query heads times their width

    @classmethod
    def of(cls, network: Any) -> Shape:
        """The sizes of a Llama."""
        config = network.config
        head = network.lm_head.weight
        everything = sum(p.numel() for p in network.parameters())
        products = everything - head.numel() - network.model.embed_tokens.weight.numel()
        width = config.hidden_size // config.num_attention_heads
        return cls(
            products=products,
            head=head.numel(),
            bytes=(products + head.numel()) * head.element_size(),
            layers=config.num_hidden_layers,
            kv_bytes=2 * config.num_hidden_layers * config.num_key_value_heads * width * head.element_size(),
            heads_width=config.num_attention_heads * width,
        )

    def flops(self, parts: Sequence[Part], logits: int) -> float:
        """Of a pass over these parts, with that many logits in all."""
        pairs = sum(p.rows * p.tokens * (p.columns + p.shared) for p in parts)
        attention = 4 * self.layers * self.heads_width * pairs
        return 2.0 * (sum(p.rows * p.tokens for p in parts) * self.products + logits * self.head) + attention


@dataclass(frozen=True)
class Part:
    """Rows of a pass that attend to as many columns.

    Attributes:
        rows: how many.
        tokens: that each reads.
        columns: of its own that it attends to.
        shared: columns that they have in common and attend to as well.
    """

    rows: int
    tokens: int
    columns: int
    shared: int = 0


@dataclass
class Tally:
    """What the forward passes of a run come to."""

    passes: int = 0
    tokens: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    most_kv_bytes: int = 0

    def in_words(self, model: str) -> str:
        """One line on passes of a model."""
        return (
            f"derived for the {model} on an H200, not measured: {self.passes} forward passes, {self.tokens} tokens, "
            f"{self.flops / 1e12:.1f} TFLOP, {self.bytes / _GIB:.0f} GiB read, {self.seconds:.2f} s; "
            f"keys and values of one pass up to {self.most_kv_bytes / _GIB:.2f} GiB"
        )


@dataclass(frozen=True)
class DerivedClock(Clock):
    """Reads the seconds that the passes so far would have taken.

    Attributes:
        shape: of the model that they are derived for.
        tally: what they come to.
        flops: that the device computes in a second.
        model: the shape's name.
        kept_once: bytes that are read of a number that all rows share, over those of one in a row.
    """

    shape: Shape = field(default_factory=lambda: Shape.of(random_llama("7b", "meta")))
    tally: Tally = field(default_factory=Tally)
    flops: float = FLOPS
    model: str = "7B shape in bfloat16"
    kept_once: int = 2  # single precision

    @classmethod
    def in_single_precision(cls) -> DerivedClock:
        """For what is done in float32 alone: the benchmarks' model of 125 million parameters."""
        shape = Shape.of(random_llama("125m", "meta"))
        return cls("cpu", shape, flops=SINGLE_FLOPS, model="125M shape in float32", kept_once=1)

    def in_words(self) -> str:
        """One line on the passes so far."""
        return self.tally.in_words(self.model)

    def read(self) -> float:
        """Seconds."""
        return self.tally.seconds

    def watch(self, network: Any) -> None:
        """Charge every forward pass of a network."""
        network.register_forward_pre_hook(self._charge, with_kwargs=True)

    def _charge(self, module: Any, args: Any, kwargs: Any) -> None:
        ids, keep = kwargs["input_ids"], kwargs.get("logits_to_keep", 1)
        parts = list(parts_of(kwargs.get("cache", kwargs.get("past_key_values")), *ids.shape))
        shape, tally = self.shape, self.tally
        flops = shape.flops(parts, len(ids) * (keep if isinstance(keep, int) else len(keep)))
        held = shape.kv_bytes * sum(p.rows * p.columns + p.shared * self.kept_once for p in parts)
        tally.passes += 1
        tally.tokens += ids.numel()
        tally.flops += flops
        tally.bytes += shape.bytes + held
        tally.most_kv_bytes = max(tally.most_kv_bytes, held)
        tally.seconds += max((shape.bytes + held) / BYTES_PER_SECOND, flops / self.flops)


def parts_of(cache: Any, rows: int, tokens: int) -> Iterator[Part]:
    """What attends to what in a pass of so many rows and tokens of each; padding attends to itself."""
    if not isinstance(cache, JointCache):
        shared = getattr(cache, "shared", None)
        yield Part(rows, tokens, columns_held(cache) + tokens, shared.tokens if shared else 0)
        return
    filling = rows * tokens
    for step in cache.steps:
        yield from parts_of(step.cache, *step.ids.shape)
        filling -= step.ids.numel()
    yield Part(1, filling, 1)


def columns_held(cache: Any) -> int:
    """Columns of its own that a pass finds of each row in its cache."""
    width = getattr(cache, "width", None)  # of a slab: the row's own, with the one that is read now
    return int(width) - 1 if width is not None else 0 if cache is None else int(cache.get_seq_length())


def small_network(clock: DerivedClock, dtype: str, size: str = "tiny") -> Any:
    """The model that runs in place of the large one, in a precision; the clock charges its passes."""
    import torch

    network = random_llama(size, "cpu").to(getattr(torch, dtype))
    clock.watch(network)
    return network
