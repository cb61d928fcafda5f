"""Audits of isolation: what reaches a prompt at run time."""
