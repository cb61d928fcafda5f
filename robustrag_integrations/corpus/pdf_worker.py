"""Reading PDFs where a hostile one can do no harm: in a process that has little time and memory, and may be killed.

The worker is started once. For every file it makes a copy of itself, so that no file meets what another one has left
behind; where processes cannot be copied, the worker is started again after each file. Requests and replies are a line
of JSON and so many bytes; nothing is unpickled.
"""

from __future__ import annotations

import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import IO

from robustrag_integrations.corpus.extras import needed
from robustrag_integrations.corpus.pdf_text import PDFError, PDFLimits, text_of_pdf

_FORKS = hasattr(os, "fork")
_CLOCK = 4  # seconds by the clock for each of processor time, as others use the machine too
_GRACE = 10.0  # more seconds that the worker has to say what became of a file, and to start
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from robustrag_integrations.corpus.pdf_worker import serve; serve()"
)


class PDFWorker:
    """Reads PDFs one after the other in another process, which is started with the first and ends with `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def text_of(self, data: bytes, limits: PDFLimits) -> str:
        """The text of a PDF.

        Raises:
            PDFError: it cannot be read, or not within the limits; the message goes after the file's name.
            ImportError: pypdf is not installed.
        """
        needed("pypdf", "reading PDF files")
        process = self._started()
        overdue = threading.Timer(_CLOCK * limits.seconds + _GRACE, _kill, [process])
        overdue.start()
        try:
            _send(process.stdin, {**asdict(limits), "read": True}, data)
            header, text = _receive(process.stdout)
        except (OSError, ValueError):
            self.close()
            raise PDFError(_too_much(limits)) from None
        finally:
            overdue.cancel()
        if not _FORKS:
            self.close()
        if not header["read"]:
            raise PDFError(text.decode())
        return text.decode()

    def close(self) -> None:
        """End the process; another file would start a new one."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def __enter__(self) -> PDFWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
                    [sys.executable, "-c", _START, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # killed with its copies; an interrupt is for this process to deal with
                )
            except OSError as error:
                raise PDFError(f"cannot be read: no process could be started for it ({error.strerror})") from error
        return self._process


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if _FORKS:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _too_much(limits: PDFLimits) -> str:
    return f"took more than the {limits.seconds:.3g} s or the memory that a file of its size has; print it to a new PDF"


def _send(pipe: IO[bytes] | None, header: dict[str, object], data: bytes) -> None:
    assert pipe is not None  # noqa: S101 - it was asked for
    pipe.write(json.dumps({**header, "bytes": len(data)}).encode() + b"\n")
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes] | None) -> tuple[dict[str, int], bytes]:
    """The next message.

    Raises:
        ValueError: the other side has gone.
    """
    assert pipe is not None  # noqa: S101 - it was asked for
    header = json.loads(pipe.readline(1000))
    data = pipe.read(header["bytes"])
    if len(data) < header["bytes"]:
        raise ValueError("the other side has gone")
    return header, data


# What runs in the worker


def serve() -> None:
    """Read what is asked for on the standard input, until that ends."""
    needed("pypdf", "reading PDF files")  # before any copy is made
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    while True:
        try:
            header, data = _receive(requests)
        except ValueError:
            return
        limits = PDFLimits(header["seconds"], header["characters"], header["pages"], header["memory"])
        if _FORKS:
            _read_in_a_copy(data, limits, replies)
        else:
            _read(data, limits, replies)


def _read(data: bytes, limits: PDFLimits, replies: IO[bytes]) -> None:
    try:
        read, text = True, text_of_pdf(data, limits)
    except PDFError as error:
        read, text = False, str(error)
    _send(replies, {"read": read}, text.encode())


def _read_in_a_copy(data: bytes, limits: PDFLimits, replies: IO[bytes]) -> None:
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(ours)
            _limit(limits)
            with os.fdopen(theirs, "wb") as pipe:
                _read(data, limits, pipe)
        finally:
            os._exit(0)
    os.close(theirs)
    said = _said_within(_CLOCK * limits.seconds, ours)
    os.close(ours)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        header, text = _receive(io.BytesIO(said))
    except ValueError:
        header, text = {"read": False}, _too_much(limits).encode()
    _send(replies, {"read": header["read"]}, text)


def _said_within(seconds: float, pipe: int) -> bytes:
    """What comes out of a pipe until it is closed or the time is over."""
    said, until = bytearray(), time.monotonic() + seconds
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(pipe, 1 << 20)
        if not piece:
            break
        said += piece
    return bytes(said)


def _limit(limits: PDFLimits) -> None:
    import resource

    signal.setitimer(signal.ITIMER_PROF, limits.seconds)  # ends the process; the limit below only counts whole seconds
    wanted = (
        (resource.RLIMIT_CPU, math.ceil(limits.seconds) + 1),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in wanted:
        with suppress(OSError, ValueError):  # a system may refuse, or already allow less
            resource.setrlimit(kind, (most, most))
