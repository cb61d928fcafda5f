"""What pages and examples tell readers to install: `python -m docs.site.install` writes it into all of them.

The first release on the package index sets `NAME` to `robustrag-integrations`, and runs this.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "."
SAYS = {
    ".": "It is not on the package index yet. Clone the repository, and run `pip install '.[EXTRA,...]'`:",
    "robustrag-integrations": "`pip install 'robustrag-integrations[EXTRA,...]'`:",
}
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "examples").rglob("*.*") if path.suffix in {".md", ".py", ".yaml"}),
)
_OURS = r"'(?:\.|robustrag-integrations)(\[[A-Za-z,.-]+\])'|robustrag-integrations\b|\.(?=\s|$)"
_LINE = re.compile(rf"(pip install )(?:{_OURS})")
_SENTENCE = re.compile(r"(<!-- install -->\n).*?(\n<!-- /install -->)", re.DOTALL)


def told(text: str) -> str:
    """A page with what `NAME` says to install."""
    lines = _LINE.sub(lambda m: f"{m[1]}'{NAME}{m[2]}'" if m[2] else f"{m[1]}{NAME}", text)
    return _SENTENCE.sub(lambda m: f"{m[1]}{SAYS[NAME]}{m[2]}", lines)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(told(path.read_text(encoding="utf-8")), encoding="utf-8")
