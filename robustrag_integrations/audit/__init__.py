"""Audits of isolation: of prompts at run time, and of wirings before it."""
