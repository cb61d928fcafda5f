"""Origins: who controls a text, as its metadata names it. By default, one origin has one vote.

`metadata` finds the name, `names` brings it into the form that is compared, `sites` cuts an address to its registrable
domain. All of them are functions of one passage's metadata alone: no passage has a say in what another's origin is.
"""
