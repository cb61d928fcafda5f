"""A scratch folder for the files that targets read."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    """A folder of this process, in memory where possible."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="robustrag-fuzz-", dir=memory))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
