"""Programs that use the public API of both integrations pass a strict type checker, as their users run one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="needs mypy")
for module in ("langchain.agents", "langchain_classic.chains", "llama_index.core"):
    pytest.importorskip(module, reason=f"needs {module}")

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((Path(__file__).parent / "user_programs").glob("*.py"))


@pytest.mark.timeout(1800)
def test_a_users_program_is_typed(tmp_path: Path) -> None:
    assert len(PROGRAMS) == 3
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *(p.name for p in PROGRAMS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
