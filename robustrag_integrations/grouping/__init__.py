"""Isolated groups of passages: one for each origin, what an origin is, and how many votes it has.

`metadata` finds the name, `origins` brings it into the form that is compared, `addresses` reads the host, `sites` cuts
it to its registrable domain. All of them are functions of one passage's metadata alone: no passage has a say in what
another's origin is. `passages` cuts the groups (paper, section III-A), `votes` weighs them, `quotas` chooses from a
ranking.
"""
