"""Isolated groups of passages: one for each origin, what an origin is, and how many votes it has.

`origins` reads whose text a passage is, `passages` cuts the groups (paper, section III-A), `trust` and `votes` weigh
them, `warnings` tells what to make of them, `quotas` chooses from a ranking. No passage has a say in what another's
origin is.
"""
