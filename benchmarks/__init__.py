"""Measures what the defences cost next to plain retrieval-augmented generation: `python -m benchmarks --help`."""
