"""Scoring of rows: scores, intervals, the schema of a row, and the summary of a run."""
