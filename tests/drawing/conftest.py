"""The rows that evaluation's tests look at, drawn."""

from __future__ import annotations

from tests.evaluation.conftest import made_rows

__all__ = ["made_rows"]
