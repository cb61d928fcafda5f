"""Consensus: one round of calls, an answer made of what most of the strongest support says."""
