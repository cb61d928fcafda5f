"""Counting votes: which answer wins, and how many sources can be replaced without changing it. Pure functions."""
