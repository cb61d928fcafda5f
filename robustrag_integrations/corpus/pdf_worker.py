"""Reads hostile PDFs safely: each in a fresh process with little time and memory.

The process runs `pdf_text.py` alone, gets the limits and the file on its standard input, and replies on its standard
output. Nothing is unpickled, nothing of this program's memory is in it, and no file meets what another one left behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.corpus import pdf_text
from robustrag_integrations.corpus.extras import needed
from robustrag_integrations.corpus.pdf_text import PDFError, PDFLimits

_CLOCK = 4  # seconds by the clock for each of processor time, as others use the machine too
_GRACE = 10.0  # more seconds that a process has to start and to reply


class PDFWorker:
    """Reads PDFs one after the other. From the second one on, the next process starts while a file is read."""

    def __init__(self) -> None:
        self._next: subprocess.Popen[bytes] | None = None
        self._has_read = False

    def text_of(self, data: bytes, limits: PDFLimits) -> str:
        """Return the text of a PDF.

        Raises:
            PDFError: it cannot be read, or not within the limits; the message goes after the file's name.
            ImportError: pypdf is not installed.
        """
        needed("pypdf", "reading PDF files")
        process, self._next = self._next, None
        if process is None or process.poll() is not None:
            process = _started()
        try:
            if self._has_read:
                self._next = _started()
            self._has_read = True
            with suppress(subprocess.TimeoutExpired, OSError):
                message = json.dumps(asdict(limits)).encode() + b"\n" + data
                reply, _ = process.communicate(message, _CLOCK * limits.seconds + _GRACE)
        finally:
            _end(process)
        if process.returncode != 0:
            raise PDFError(
                f"took more than the {limits.seconds:.3g} s or the memory that a file of its size has; print it to a "
                "new PDF"
            )
        text = valid_text(reply[1:].decode("utf-8", "surrogatepass"))
        if reply[:1] != pdf_text.READ:
            raise PDFError(printable(text, 300))
        return text

    def close(self) -> None:
        """End the process that waits for another file."""
        if self._next is not None:
            _end(self._next)


def _started() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, a file of this package
            [sys.executable, "-I", pdf_text.__file__, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for this process to deal with
        )
    except OSError as error:
        raise PDFError(f"cannot be read: no process could be started for it ({error.strerror})") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
