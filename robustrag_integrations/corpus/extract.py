"""A program that extracts the texts of files, and may be killed at any moment (`reading` runs it).

It skips this package's own beginning, which takes longer to import than most files take to read.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

READ, NOT_READ = b"+", b"-"  # of a reply: then its length, strings left out and the text, or the error
KINDS = {  # what each is called, and what reads it
    "pdf": ("a PDF", "pdf_text.text_of"),
    "html": ("a web page", "html_text.text_of"),
    "docx": ("a Word file", "docx_text.text_of"),
    "text": ("a text file", "plain_text.text_of"),
    "markdown": ("a Markdown file", "plain_text.markdown_of"),
    "jsonl": ("a JSONL file", "plain_text.rows_of"),
    "csv": ("a CSV file", "table_text.csv_of"),
    "xlsx": ("an Excel file", "table_text.xlsx_of"),
}
_PACKAGE = "robustrag_integrations"
# Libraries that others load where they are installed: half of the time of a small page, and other guesses at encodings.
_LEFT_OUT = ("soupsieve", "charset_normalizer", "chardet", "cchardet", "html5lib")


def main() -> None:
    """Read requests from standard input, each with a file behind it, and write a reply to each."""
    sys.path[:] = json.loads(sys.argv[1])
    folder = Path(__file__).parent
    for name, place in ((_PACKAGE, folder.parent), (f"{_PACKAGE}.corpus", folder)):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(place)]
    sys.modules.update(dict.fromkeys(_LEFT_OUT))  # type: ignore[arg-type]
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    sys.setrecursionlimit(10_000)  # elements within each other
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        data = sys.stdin.buffer.read(asked["size"])
        _limit(asked["limits"]["seconds"], asked["limits"]["memory"])
        mark, text = reply(asked, data)
        written = text.encode("utf-8", "surrogatepass")
        out.write(b"%s%d\n%s" % (mark, len(written), written))
        out.flush()


def reply(asked: Mapping[str, Any], data: bytes) -> tuple[bytes, str]:
    """Return what is written of a file, `asked` for by kind, limits and whether hidden text is read."""
    limited = import_module(f"{_PACKAGE}.corpus.limits")
    called, reader = KINDS[asked["kind"]]
    module, function = reader.split(".")
    read = getattr(import_module(f"{_PACKAGE}.corpus.{module}"), function)
    try:
        text, left_out = read(data, limited.FileLimits(**asked["limits"]), hidden=asked["hidden"])
        if not asked["hidden"]:
            text, invisible = import_module(f"{_PACKAGE}.corpus.markup").without_invisible(text)
            left_out += invisible
        return READ, f"{left_out}\n{text}"
    except limited.FileError as error:
        return NOT_READ, str(error)
    except Exception as error:  # a hostile file may raise nearly anything inside the parser
        reason = str(error)[:120] or type(error).__name__
        return NOT_READ, f"is not {called} that can be read ({reason}); save it anew"


def _limit(seconds: float, memory: int) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the process; the limit below only counts whole seconds
    used = math.ceil(sum(os.times()[:2]))
    wanted = (
        (resource.RLIMIT_CPU, used + math.ceil(seconds) + 1),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in wanted:
        with suppress(OSError, ValueError):  # a system may refuse, or already allow less
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
