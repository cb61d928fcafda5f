"""Evaluation: data sets and attacks on them, runs, scores with intervals, tables (paper, section V)."""
