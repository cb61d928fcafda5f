"""Exit codes, and the error that means the command was used wrongly."""

from __future__ import annotations

EXIT_ANSWERED = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_ABSTAINED = 3
EXIT_DIFFERS = 4
EXIT_INTERRUPTED = 130


class UsageError(Exception):
    """What was typed cannot be done; the message says what to type instead."""
