"""Isolated sources of passages: one for each origin, what an origin is, and how many votes it has.

No passage has a say in what another's origin is.
"""
