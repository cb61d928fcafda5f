"""Weights and tables as spaCy and thinc write them: msgpack, with an array as a map of its type, shape and bytes."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np


def unpacked(data: bytes) -> Any:
    """Return what a file or an attribute of a pipeline holds."""
    return msgpack.unpackb(data, object_hook=_array, strict_map_key=False)


def _array(found: dict[Any, Any]) -> Any:
    if found.get(b"nd") is not True:
        return found
    return np.frombuffer(found[b"data"], np.dtype(found[b"type"])).reshape(found[b"shape"])
