"""Reads hostile PDFs safely: each in a fresh process with little time and memory.

The process runs `pdf_text.py` alone, gets the limits and the file on its standard input, and replies on its standard
output. Nothing is unpickled, nothing of this program's memory is in it, and no file meets what another one left behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.corpus import pdf_text
from robustrag_integrations.corpus.documents import needed
from robustrag_integrations.corpus.pdf_text import PDFError, PDFLimits

_CLOCK = 4  # seconds by the clock for each of processor time, as others use the machine too
_GRACE = 10.0  # more seconds that a process has to start and to reply


def text_in_process(data: bytes, limits: PDFLimits, *, hidden: bool = False) -> tuple[str, int]:
    """Return the text of a PDF, and the number of strings that are left out, as of `text_of_pdf`.

    Raises:
        PDFError: it cannot be read, or not within the limits; the message goes after the file's name.
        ImportError: pypdf is not installed.
    """
    needed("pypdf", "reading PDF files")
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, a file of this package
            [sys.executable, "-I", pdf_text.__file__, json.dumps(sys.path)],
            input=json.dumps({"limits": asdict(limits), "hidden": hidden}).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_CLOCK * limits.seconds + _GRACE,
            start_new_session=True,  # an interrupt is for this process to deal with
            check=True,
        )
    except OSError as error:
        raise PDFError(f"cannot be read: no process could be started for it ({error.strerror})") from error
    except subprocess.SubprocessError as error:
        raise PDFError(
            f"took more than the {limits.seconds:.3g} s or the memory that a file of its size has; print it to a new "
            "PDF"
        ) from error
    text = valid_text(done.stdout[1:].decode("utf-8", "surrogatepass"))
    if done.stdout[:1] != pdf_text.READ:
        raise PDFError(printable(text, 300))
    left_out, _, text = text.partition("\n")
    return text, int(left_out)
