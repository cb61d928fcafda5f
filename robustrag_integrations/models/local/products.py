"""Products with a model's weights, by the kernel that is the fastest for them on this processor.

Torch leaves those in single precision to MKL. On processors of AMD with AVX-512 it takes up to twice as long as oneDNN,
which torch brings along, too. On those without, it takes up to 1.6 times as long with large weights, and oneDNN up to
three times as long with small ones. On processors of Intel, MKL takes up to twice as long for the few rows of a
decoding step as for the same product the other way round.

Which kernel is taken follows from the shapes alone.
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

from robustrag_integrations.models.local.torch_calls import TorchCalls

Linear = Callable[..., torch.Tensor]  # called as torch's `linear`, with a weight in single precision on a CPU

_FEW = range(5, 33)  # rows of a matrix for which the transposed product may be the faster one
_LARGE = 2**19  # numbers of a weight from which on it is; smaller ones stay in the processor's cache
_FEWEST = 3  # rows from which on oneDNN is the faster one
_FOR_LONE_ROWS = 2**18  # numbers of a weight from which on it is for fewer rows, too, with AVX-512
_WORK = 2**20  # multiplications of a product from which on it is; it takes a few microseconds to be called
_OUT_OF_CACHE = 2**20  # numbers of a weight from which on it is on processors of AMD without AVX-512
_COMPILED = 32  # tokens up to which each number has kernels of its own
_WIDENED = 4  # times the square of a layer's width: numbers of its largest weight, or so
_MODE_PAYS = 2**21  # tokens times the square of a layer's width, from which on looking at every call of torch pays


def linear(
    inputs: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    as_for: int | None = None,
    whole: int | None = None,
) -> torch.Tensor:
    """As torch's `linear`.

    Args:
        inputs: [..., I], single precision on a CPU.
        weight: [O, I], the same.
        bias: [O], the same, or None.
        as_for: the number of rows to choose the kernel for, where passes with other numbers must give the same bits;
            None for those of `inputs`.
        whole: the numbers of the weight to choose the kernel for, where this is a part of it that must give the bits
            of the whole; None for those of `weight`.

    Returns:
        [..., O]
    """
    rows, numbers = as_for or inputs.numel() // max(1, inputs.shape[-1]), whole or weight.numel()
    if (_takes_lone_rows(numbers) and weight.is_contiguous()) or takes_onednn(rows, numbers, _WORK):
        return by_onednn(inputs, weight, bias)
    if rows in _FEW and numbers >= _LARGE and _mkl_likes_columns():
        return _transposed(inputs, weight, bias)
    return functional.linear(inputs, weight, bias)


def takes_onednn(rows: int, numbers: int, least: int) -> bool:
    """Whether a product is oneDNN's.

    Args:
        rows: of the inputs.
        numbers: of the weight.
        least: multiplications from which on it pays.
    """
    return rows >= fewest_rows(numbers, least) and _onednn_is_faster(numbers)


def fewest_rows(numbers: int, least: int) -> int:
    """The number of rows from which on a product is oneDNN's, where that is the faster one; both as above."""
    return max(_FEWEST, -(-least // max(1, numbers)))


def _takes_lone_rows(numbers: int) -> bool:
    """Whether products with a weight of so many numbers, row by row in memory, are oneDNN's for a lone row, too."""
    return numbers >= _FOR_LONE_ROWS and _has_avx512() and _onednn_is_faster(numbers)


def whole_tokens(tokens: int, numbers: int) -> int:
    """The number of tokens that so many are filled up to, of which there are 16 between any number and twice as many.

    oneDNN compiles a kernel for each shape, and keeps a thousand: prompts of all lengths would drive each other's out.

    Args:
        tokens: of a prompt.
        numbers: of the largest weight that all its tokens are multiplied with.
    """
    if tokens <= _COMPILED or not _onednn_is_faster(numbers):
        return tokens
    step = 1 << ((tokens - 1).bit_length() - 5)
    return -(-tokens // step) * step


def products(
    way: Linear, tokens: int, keep: int | torch.Tensor, embeddings: torch.Tensor
) -> AbstractContextManager[object]:
    """Have a model's own code compute its products in a way of ours during a forward pass, where that pays.

    Args:
        way: `linear`, with what it is to know.
        tokens: how many are read, or the number that kernels are chosen for.
        keep: of how many of them logits are wanted, or which.
        embeddings: [V, width] of its tokens, whose size says how large its products are.
    """
    square = embeddings.shape[-1] ** 2
    if _onednn_is_faster(_WIDENED * square):
        pays = tokens * square >= _MODE_PAYS and (tokens >= _FEWEST or _takes_lone_rows(_WIDENED * square))
    else:
        few = tokens in _FEW or (keep if isinstance(keep, int) else len(keep)) in _FEW
        pays = few and embeddings.numel() >= _LARGE and _mkl_likes_columns()
    return Products(way) if pays else nullcontext()


class Products(TorchCalls):
    """Within it, this thread's products with weights in single precision on a CPU are computed in a way of one's own.

    Args:
        way: called in place of torch's `linear`.
    """

    def __init__(self, way: Linear) -> None:
        super().__init__()
        self._way = way

    def call(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """In our way, if it is such a product."""
        ours = func is functional.linear and _is_single(*args[:2]) and not torch.compiler.is_compiling()
        return (self._way if ours else func)(*args, **kwargs)  # whoever compiles a model chooses its kernels


def _is_single(inputs: Any, weight: Any = None) -> bool:
    """Whether this is a product in single precision on a CPU of what torch itself keeps: no quantised weights."""
    return (
        isinstance(weight, torch.Tensor)
        and type(weight) in (torch.Tensor, torch.nn.Parameter)
        and weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and weight.dim() == 2
        and not torch.is_autocast_enabled("cpu")
    )


def by_onednn(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear` by oneDNN."""
    found: torch.Tensor = _onednn_product()(inputs, weight, bias, "none", [], "")
    return found


def _transposed(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear` as weight times columns."""
    columns = inputs.reshape(-1, inputs.shape[-1]).t().contiguous()
    rows = torch.mm(weight, columns).t().contiguous().reshape(*inputs.shape[:-1], -1)
    return rows if bias is None else rows + bias


def _mkl_likes_columns() -> bool:
    """Whether few rows are faster as columns; with MKL on AMD's processors they take up to four times as long."""
    return processor() == "intel" and torch.backends.mkl.is_available()


def mkl_likes_laid_weights() -> bool:
    """Whether MKL is the faster one with small weights, and faster still if they are laid for it."""
    return processor() == "amd" and not _has_avx512() and torch.backends.mkl.is_available()


def _onednn_is_faster(numbers: int) -> bool:
    """Whether oneDNN is for many rows and a weight of so many numbers; it must not have been switched off."""
    likes = processor() == "amd" and (numbers >= _OUT_OF_CACHE or _has_avx512())
    return likes and torch.backends.mkldnn.enabled and _has_onednn()


@cache
def _has_avx512() -> bool:
    """Whether torch sees these instructions; oneDNN uses them wherever they are, MKL on processors of Intel alone."""
    return "AVX512" in torch.backends.cpu.get_cpu_capability()


@cache
def _onednn_product() -> Callable[..., torch.Tensor]:
    """Looked up once: it is called hundreds of times for a question."""
    found: Callable[..., torch.Tensor] = torch.ops.mkldnn._linear_pointwise.default
    return found


@cache
def _has_onednn() -> bool:
    """Whether this build of torch has it, and gives access to it."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        by_onednn(torch.zeros(4, 8), torch.zeros(8, 8))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


@cache
def processor() -> str:
    """Who made it: "amd", "intel" or ""."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        described = platform.processor()
    makers = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
    return next((short for name, short in makers.items() if name in described), "")
