"""Puts the site's pages together: those of `docs/`, other files of the repository, and what the code writes itself."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from docs.site.examples import examples_page
from docs.site.reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Files of the repository that are pages of the site, too.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "examples/results/README.md": "results.md",
    "examples": "examples.md",
    "robustrag_integrations/text/pipeline/README.md": "keyword-pipeline.md",
    "robustrag_integrations/reader/model/README.md": "bundled-reader.md",
    "robustrag_integrations/evaluation/world/README.md": "demonstration-world.md",
    "README.md": "index.md",
}
_LINK = re.compile(r"(?<!`)(!?)\[((?:[^\]]|\](?!\())+?)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Write all pages and pictures into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    places = staged_places()
    for source, place in places.items():
        path = ROOT / source
        if not path.is_file() or source == "README.md":
            continue
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(with_links(path.read_text(encoding="utf-8"), source, places), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    shutil.copyfile(Path(__file__).with_name("site.css"), folder / "site.css")
    for place, text in {"examples.md": examples_page(), **reference_pages()}.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")


def staged_places() -> dict[str, str]:
    """Where files of the repository stand in the site, both as paths with slashes."""
    found = dict(ELSEWHERE)
    for path in sorted(DOCS.rglob("*")):
        source = path.relative_to(ROOT).as_posix()
        if path.suffix in {".md", ".png", ".svg"} and source not in found:
            found[source] = path.relative_to(DOCS).as_posix()
    return found


def with_links(text: str, source: str, places: Mapping[str, str]) -> str:
    """A page with its links as the site needs them; a link to a file that is no page becomes its path.

    Args:
        text: Markdown.
        source: where the page is in the repository.
        places: where its files stand in the site.
    """
    here = posixpath.dirname(places[source])

    def moved(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if ":" in path or not path:
            return match[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if wanted.startswith("examples/") and wanted.endswith(".py") and wanted.count("/") == 1:
            if not (ROOT / wanted).exists():
                raise ValueError(f"{source} links to {target}, which is not there")
            wanted, anchor = "examples", f"{posixpath.basename(wanted).removesuffix('.py')}py"  # its heading there
        if wanted not in places:
            if not (ROOT / wanted).exists():
                raise ValueError(f"{source} links to {target}, which is not there")
            return f"{label} (`{wanted}`)"
        return f"{picture}[{label}]({posixpath.relpath(places[wanted], here or '.')}{'#' if anchor else ''}{anchor})"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)
