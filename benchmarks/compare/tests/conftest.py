"""No network but this machine's own, as in all tests."""

from __future__ import annotations

from tests.conftest import no_network

__all__ = ["no_network"]
