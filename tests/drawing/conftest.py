"""The rows that evaluation's tests look at, drawn."""

from __future__ import annotations

from tests.evaluation.conftest import dangerous_rows, made_rows

__all__ = ["dangerous_rows", "made_rows"]
