"""Shared parts of the methods that count keywords: reply reading, tallies, and who supports an answer."""
