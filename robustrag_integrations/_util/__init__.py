"""Helpers that know nothing of the rest: checks of arguments, display, redaction, JSON, plug-ins."""
