"""Each snippet and each example, run with what its install line names and nothing else: `make test-installs`.

One new environment for each install line, with the package as a wheel. Nothing is skipped: an environment that cannot
be made is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.installs.pages import PAGES, ROOT, examples, extras, programs, snippets

HERE = ROOT / ".venv-installs"  # wheels/ is filled by the Makefile: torch, and this package
# The repository comes last, for tests/ alone: the package is the installed one.
IMPORT = f"import sys; sys.path.append({str(ROOT)!r}); from tests.installs.in_environment import main"
LIMIT = 900  # seconds for all snippets of an install line, or for one example


class FailedError(Exception):
    """A command that ended badly; the text is what it printed."""


def call(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a command; raise FailedError if it failed or took too long."""
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT
        )
    except subprocess.TimeoutExpired as error:
        raise FailedError(f"{shown}: not done after {LIMIT} s") from error
    if done.returncode:
        raise FailedError(f"{shown}: exit {done.returncode}\n{done.stdout.decode(errors='replace')[-6000:]}")


def try_out(needs: tuple[str, ...]) -> bool:
    """Make the environment of an install line and run everything in it; whether all went well."""
    start = time.monotonic()
    name = "-".join("".join(c if c.isalnum() else "-" for c in need) for need in needs)
    folder, environment = HERE / "work" / name, HERE / "environments" / name
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "examples", folder / "examples")
    python = str(environment / "bin" / "python")
    alone = {
        "PATH": f"{environment / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # two environments at a time have a core each
    }
    [wheel] = (HERE / "wheels").glob("robustrag_integrations-*.whl")
    # The wheel itself, so that nothing of that name on a package index can stand in for it.
    asked = [f"{n} @ {wheel.as_uri()}" if n.startswith("robustrag-integrations") else n for n in needs]
    wheels = ["--find-links", str(HERE / "wheels"), "-c", "constraints.txt"]
    mine = [path for path in programs() if examples()[path] == needs]
    try:
        call([str(ROOT / ".ci" / "install"), str(environment), *wheels, *asked], ROOT, dict(os.environ))
        call([python, "-c", f"{IMPORT}; main({needs!r})"], folder, alone)
        for path in mine:
            call([python, str(path)], folder, alone)
    except FailedError as error:
        print(f"FAILED: pip install {' '.join(needs)}\n{error}", flush=True)
        return False
    ran = sum(s.needs == needs and s.is_run for page in PAGES for s in snippets(page))
    print(f"{time.monotonic() - start:4.0f} s  {ran:2} snippets  {len(mine)} examples  {' '.join(needs)}", flush=True)
    shutil.rmtree(environment)
    return True


def main() -> int:
    """Try all install lines out, two at a time; 1 if something failed."""
    for part in ("work", "environments"):
        shutil.rmtree(HERE / part, ignore_errors=True)
    lines = {s.needs for page in PAGES for s in snippets(page) if s.is_run} | {examples()[path] for path in programs()}
    lines.discard(())  # `make demo` and the like; tests/docs/test_installs.py holds that nothing else is without a line
    with ThreadPoolExecutor(2) as pool:
        return 0 if all(list(pool.map(try_out, sorted(lines, key=work, reverse=True)))) else 1


def work(needs: tuple[str, ...]) -> tuple[bool, int]:
    """What tells which install line takes longest: that models run here, and how many commands there are."""
    return "local" in extras(needs), sum(len(s.commands) for page in PAGES for s in snippets(page) if s.needs == needs)


if __name__ == "__main__":
    sys.exit(main())
