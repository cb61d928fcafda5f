"""A program that extracts the text of one file, and may be killed at any moment (`reading` runs it).

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

READ, NOT_READ = b"+", b"-"  # of a reply: then strings left out, a line break and the text; or the error
KINDS = {"pdf": "a PDF", "html": "a web page", "docx": "a Word file"}  # each read by its module here
_PACKAGE = "robustrag_integrations"
# Libraries that others load where they are installed: half of the time of a small page, and other guesses at encodings.
_LEFT_OUT = ("soupsieve", "charset_normalizer", "chardet", "cchardet", "html5lib")


def main() -> None:
    """Read kind, limits and file from standard input, and write the text or the error."""
    sys.path[:] = json.loads(sys.argv[1])
    folder = Path(__file__).parent
    for name, place in ((_PACKAGE, folder.parent), (f"{_PACKAGE}.corpus", folder)):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(place)]
    sys.modules.update(dict.fromkeys(_LEFT_OUT))  # type: ignore[arg-type]
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    sys.setrecursionlimit(10_000)  # elements within each other
    asked = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    _limit(asked["limits"]["seconds"], asked["limits"]["memory"])
    mark, text = reply(asked, data)
    out.write(mark + text.encode("utf-8", "surrogatepass"))
    out.close()


def reply(asked: Mapping[str, Any], data: bytes) -> tuple[bytes, str]:
    """Return what is written of a file, `asked` for by kind, limits and whether hidden text is read."""
    limited = import_module(f"{_PACKAGE}.corpus.limits")
    reader = import_module(f"{_PACKAGE}.corpus.{asked['kind']}_text")
    try:
        text, left_out = reader.text_of(data, limited.FileLimits(**asked["limits"]), hidden=asked["hidden"])
        return READ, f"{left_out}\n{text}"
    except limited.FileError as error:
        return NOT_READ, str(error)
    except Exception as error:  # a hostile file may raise nearly anything inside the parser
        reason = str(error)[:120] or type(error).__name__
        return NOT_READ, f"is not {KINDS[asked['kind']]} that can be read ({reason}); save it anew"


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
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
