"""Engines, which make the rows: this process, or a Ray cluster. All of them make the same rows."""
