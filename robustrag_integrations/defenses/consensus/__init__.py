"""Consensus: one round of calls; every source's whole answer is one vote, and most votes win."""
