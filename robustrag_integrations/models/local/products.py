"""Products with a model's weights, by the fastest kernel for them on this processor.

Torch leaves products in single precision to MKL. On AMD processors it takes longer than oneDNN, which comes with torch:
up to twice as long with AVX-512, and without it up to 1.6 times as long for large weights. A model of 0.5 billion
parameters answers 1.2 to 1.3 times as fast with oneDNN. On Intel processors, MKL takes up to twice as long for the few
rows of a decoding step as for the transposed product.

The kernel follows from the shapes alone, so that no passage chooses it for another one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_WIDTH = 512  # of a model's layers; with narrower ones, intercepting every call of torch does not pay
_LONE_ROWS = 2**18  # numbers of a weight; from there, oneDNN is faster even for one row or two, with AVX-512
_WORK = 2**20  # multiplications of a product; from there, oneDNN is faster: its call takes a few microseconds
_OUT_OF_CACHE = 2**20  # numbers of a weight; from there, oneDNN is faster without AVX-512
_FEW = range(5, 33)  # rows for which the transposed product may be the faster one
_LARGE = 2**19  # numbers of a weight; from there, it is faster: smaller ones stay in the processor's cache


def fast_products(tokens: int, model: Any) -> AbstractContextManager[object]:
    """Use the fastest kernels for a model's products during a forward pass over this many tokens."""
    embeddings = model.get_input_embeddings().weight
    pays = embeddings.shape[-1] >= _WIDTH and embeddings.dtype == torch.float32 and embeddings.device.type == "cpu"
    return FastProducts() if pays and (onednn_pays() or (tokens in _FEW and _mkl_likes_columns())) else nullcontext()


class FastProducts(TorchFunctionMode):  # type: ignore[misc]  # untyped library
    """Within it, this thread's products with weights in single precision on a CPU are computed by `linear`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one torch call, replaced if it is such a product."""
        ours = func is functional.linear and _is_single(*args[:2]) and not torch.compiler.is_compiling()
        return (linear if ours else func)(*args, **kwargs or {})  # a compiled model chooses its own kernels


def linear(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Torch's `linear`, for a weight [O, I] in single precision on a CPU."""
    rows, numbers = inputs.numel() // max(1, inputs.shape[-1]), weight.numel()
    if onednn_pays():
        enough = rows >= 3 and rows * numbers >= _WORK
        if (enough or numbers >= _LONE_ROWS) if _has_avx512() else (enough and numbers >= _OUT_OF_CACHE):
            return by_onednn(inputs, weight, bias)
    if rows in _FEW and numbers >= _LARGE and _mkl_likes_columns():
        columns = inputs.reshape(-1, inputs.shape[-1]).t().contiguous()
        product = torch.mm(weight, columns).t().contiguous().reshape(*inputs.shape[:-1], -1)
        return product if bias is None else product + bias
    return functional.linear(inputs, weight, bias)


def by_onednn(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear` by oneDNN."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise.default(inputs, weight, bias, "none", [], "")
    return product


def onednn_pays() -> bool:
    """True on AMD processors, unless oneDNN was switched off or this build of torch lacks it."""
    return processor() == "amd" and torch.backends.mkldnn.enabled and _has_onednn()


def _is_single(inputs: Any, weight: Any = None) -> bool:
    """True for a product in single precision on a CPU with one of torch's own weights, not a quantised one."""
    return (
        isinstance(weight, torch.Tensor)
        and type(weight) in (torch.Tensor, torch.nn.Parameter)
        and weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and weight.dim() == 2
        and not torch.is_autocast_enabled("cpu")
    )


def _mkl_likes_columns() -> bool:
    """True where few rows are faster as columns; with MKL on AMD processors, columns take up to four times as long."""
    return processor() == "intel" and torch.backends.mkl.is_available()


@cache
def _has_avx512() -> bool:
    """True if torch sees AVX-512; oneDNN uses it wherever it is available, MKL on Intel processors alone."""
    return "AVX512" in torch.backends.cpu.get_cpu_capability()


@cache
def _has_onednn() -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        by_onednn(torch.zeros(4, 8), torch.zeros(8, 8))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


@cache
def processor() -> str:
    """Return the maker of the processor: "amd", "intel" or ""."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        described = platform.processor()
    makers = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
    return next((short for name, short in makers.items() if name in described), "")
