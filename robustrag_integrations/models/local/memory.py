"""Explanations of out-of-memory errors: the memory needed, the memory free, the size that would fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from robustrag_integrations.errors import ModelError

_FOR_KEYS_AND_VALUES = 0.8  # of the free memory; the rest is for activations
_CPU_SIGNS = ("can't allocate memory", "not enough memory")
GIB = 2**30
_explaining = ContextVar("_explaining", default=False)


@contextmanager
def memory_explained(
    device: torch.device, rows: int, columns: int, bytes_per_token: Callable[[], int]
) -> Iterator[None]:
    """Add to an out-of-memory error the size that would have fitted; of nested blocks, the outermost does it.

    Args:
        device: where the memory is.
        rows: the number of prompts that are read together.
        columns: the most tokens that each of them may come to have.
        bytes_per_token: gives the size of the keys and values of one token of one row.

    Raises:
        ModelError: in place of the library's out-of-memory error.
    """
    if _explaining.get():
        yield
        return
    free, token = free_bytes(device), _explaining.set(True)
    try:
        yield
    except RuntimeError as error:
        if not _out_of_memory(error):
            raise
        raise ModelError(_explanation(rows, columns, bytes_per_token(), free)) from error
    finally:
        _explaining.reset(token)


def free_bytes(device: torch.device) -> int | None:
    """Return the free memory of a device, in bytes; None if unknown."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + held)
    if device.type == "cpu" and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _CPU_SIGNS)


def _explanation(rows: int, columns: int, bytes_per_token: int, free: int | None) -> str:
    needed = rows * columns * bytes_per_token
    said = (
        f"out of memory: {rows} prompt{'s' * (rows > 1)} of up to {columns} tokens: keys and values of "
        f"{needed / GIB:.2f} GiB, and activations on top"
    )
    if free is None:
        return f"{said}; ask about fewer passages, or lower max_context_tokens, max_new_tokens or prefill_tokens"
    usable = int(free * _FOR_KEYS_AND_VALUES) // bytes_per_token
    said += f"; {free / GIB:.2f} GiB were free"
    if usable >= rows * columns:
        return f"{said}, which is enough for keys and values: lower prefill_tokens, which bounds the activations"
    return (
        f"{said}: {usable // columns} prompts of that length would fit, or {rows} of {usable // rows} tokens. Ask "
        "about fewer passages, put several into a group, or lower max_context_tokens or max_new_tokens"
    )
