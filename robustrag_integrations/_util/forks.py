"""Detects forks while a thread answers: the child refuses to answer, and the error names the fix.

A child process has none of its parent's other threads, but every lock that they held, this package's and those of the
libraries below it, and nobody is left to release them. So a server forks its workers before the first question, or
between two. Threads that were kept for the next call are started anew in the child (`models.thread_pool`).
"""

from __future__ import annotations

import os
import threading

_answering: dict[object, int] = {}  # answer under way -> the thread that began it
_forked_meanwhile = False


def begin(answer: object) -> None:
    """Note the start of an answer in this thread.

    Raises:
        RuntimeError: this process was forked while another thread answered.
    """
    if _forked_meanwhile:
        raise RuntimeError(
            "this process was forked while another thread was answering, whose locks are never released here: fork "
            "before the first question is asked, or start processes with the method 'spawn'"
        )
    _answering[answer] = threading.get_ident()


def end(answer: object) -> None:
    """Note the end of an answer, successful or not."""
    _answering.pop(answer, None)


def _after_in_child() -> None:
    global _forked_meanwhile
    here = threading.get_ident()
    _forked_meanwhile |= any(thread != here for thread in _answering.values())
    _answering.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_in_child)
