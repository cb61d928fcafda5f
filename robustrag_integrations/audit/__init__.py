"""Audits of isolation: what reaches a prompt at run time, and which canaries do."""
