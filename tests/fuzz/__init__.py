"""Hostile inputs by the million: what passages, models, files and metadata may hold, against every place that reads it.

`test_fuzz.py` is a bounded run for CI; `python -m tests.fuzz.long` runs as many inputs as asked for.
"""
