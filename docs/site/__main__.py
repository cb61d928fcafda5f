"""Stages the pages into `build/site/pages`, builds `build/site/html` and checks it: `make docs`.

Exit code 1 for a warning of the builder, a link that leads nowhere, or an address that would be fetched from elsewhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docs.site.check import problems
from docs.site.stage import ROOT, stage

BUILD = ROOT / "build" / "site"


def main() -> int:
    """Build the site; 1 if anything is wrong with it."""
    stage(BUILD / "pages")
    shutil.copyfile(Path(__file__).with_name("zensical.toml"), BUILD / "zensical.toml")
    zensical = Path(sys.executable).with_name("zensical")
    done = subprocess.run([str(zensical), "build", "--strict", "--clean"], cwd=BUILD, check=False)  # noqa: S603
    if done.returncode:
        return 1
    found = problems(BUILD / "html")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{'not fit to publish' if found else 'built'}: {BUILD / 'html' / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
