"""Audits of isolation: prompts at run time, and wirings before it."""
