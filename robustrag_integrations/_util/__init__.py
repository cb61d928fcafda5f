"""Helpers that depend on nothing else here: checks of arguments, display, redaction, JSON, plug-ins."""
