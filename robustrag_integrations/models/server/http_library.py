"""What the official client is built on: httpx, and from its version 3 on httpx2, which has the same names."""

from __future__ import annotations

import importlib
from typing import Any

from openai import DefaultAsyncHttpxClient

_BASE = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")

httpx: Any = importlib.import_module(_BASE.__module__.partition(".")[0])
