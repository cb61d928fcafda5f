"""Fixtures that several folders of tests share."""

from __future__ import annotations

from tests.serving import reader_folder, reader_server

__all__ = ["reader_folder", "reader_server"]
