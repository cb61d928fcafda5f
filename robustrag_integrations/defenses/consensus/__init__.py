"""Consensus: one round of calls, and an answer made of the commonest key and what most of its groups say with it."""
