"""Products with weights: the kernel that local models take on this processor, next to the others that there are.

Which one is the fastest is a matter of the processor, and local models go by what kind it is. A ratio well above one
says that this is a processor on which they should take another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn import functional

from benchmarks.inference import Bench
from benchmarks.results import Ratio, said
from benchmarks.timing import Clock
from robustrag_integrations.models.local.laid_weights import LaidWeights
from robustrag_integrations.models.local.products import by_onednn, linear

_TOKENS = {107: "a short prompt", 11: "a step of eleven rows", 1: "a lone step"}
_SMALL = ((576, 192), (192, 192), (768, 192), (192, 384))  # weights of a layer of the bundled reader: outputs, inputs
_LARGE = ((2304, 768), (3072, 768), (768, 3072))  # and of a model of 125 million parameters
_MULTIPLICATIONS = 2**28  # of a round of one kernel
_PARTS = 8  # of a round, in which the kernels take turns
_BOUND = 1.15
_Product = Callable[[torch.Tensor, torch.nn.Linear], torch.Tensor]


def ratios(bench: Bench) -> list[Ratio]:
    """Time of the kernel that is taken, over that of the fastest; always on the CPU, in single precision."""
    return [
        said(
            Ratio(
                f"products of {what} with {size} weights: taken / fastest kernel",
                tuple(_round(layers, tokens, laid=laid) for _ in range(bench.repeats + 1))[1:],
                {"cpu": ("<=", _BOUND)},
            )
        )
        for size, shapes, laid in (("small", _SMALL, True), ("large", _LARGE, False))
        for layers in [[torch.nn.Linear(inputs, outputs) for outputs, inputs in shapes]]
        for tokens, what in _TOKENS.items()
    ]


@torch.inference_mode()
def _round(layers: list[torch.nn.Linear], tokens: int, *, laid: bool) -> float:
    """What the kernel that is taken needs for some layers, over what the fastest does."""
    given = [(layer, torch.randn(1, tokens, layer.in_features)) for layer in layers]
    kernels, seconds, clock = dict(_kernels(layers, laid=laid)), dict[str, float](), Clock("cpu")
    times = max(1, _MULTIPLICATIONS // _PARTS // sum(layer.weight.numel() * tokens for layer in layers))
    for _ in range(_PARTS):
        for name, kernel in kernels.items():
            start = clock.read()
            for _ in range(times):
                for layer, numbers in given:
                    kernel(numbers, layer)
            seconds[name] = seconds.get(name, 0.0) + clock.read() - start
    return seconds["taken"] / min(seconds.values())


def _kernels(layers: list[torch.nn.Linear], *, laid: bool) -> Iterator[tuple[str, _Product]]:
    """Each by its name; weights are laid as those of small models are."""
    weights = {layer: LaidWeights(layer, {layer: (layer,)}, None) for layer in layers if laid}

    def taken(numbers: torch.Tensor, layer: torch.nn.Linear) -> torch.Tensor:
        found = weights[layer].product(layer, numbers, None) if laid else None
        return linear(numbers, layer.weight, layer.bias) if found is None else found

    yield "taken", taken
    yield "torch's own", lambda numbers, layer: functional.linear(numbers, layer.weight, layer.bias)
    if torch.backends.mkldnn.is_available():
        yield "oneDNN", lambda numbers, layer: by_onednn(numbers, layer.weight, layer.bias)
