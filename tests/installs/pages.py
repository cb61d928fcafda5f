"""What a page or an example tells its reader to install, and the snippets that this is for."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("sh", "bash", "console", "shell")
PAGES = ("README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")))
# Pages whose commands take long or ask servers that are not here: they are parsed, and their Python is run.
LONG = {f"docs/{name}.md" for name in ("guide/evaluation", "internals/measurements", "internals/reference-code")}
CODE = ("python", *SHELL)


@dataclass(frozen=True)
class Snippet:
    """A fenced block; `needs` are the requirements of the nearest install line at or above it, `line` where it begins.

    The line may be anywhere above in the same section (`##`), or before the first section for the whole page.
    """

    page: str
    line: int
    language: str
    text: str
    needs: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        """Whether it is run, and not parsed alone."""
        return self.language == "python" or self.page not in LONG

    @property
    def commands(self) -> list[list[str]]:
        """The words of its shell commands, install lines aside."""
        if self.language not in SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
        return [w for w in words if w and w[:2] != ["pip", "install"]]


def snippets(page: str) -> Iterator[Snippet]:
    """The Python and shell blocks of a page."""
    opening: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    fence, start, body, in_section = "", 0, list[str](), False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        if not fence:
            if line.startswith("## "):
                needs, in_section = opening, True
            if begins := re.match(r"```(\w+)", line):
                fence, start, body = begins[1], number + 1, []
        elif line.startswith("```"):
            if fence in CODE:
                needs = installed("\n".join(body)) or needs
                opening = opening if in_section else needs
                yield Snippet(page, start, fence, "\n".join(body) + "\n", needs)
            fence = ""
        else:
            body.append(line)


def installed(text: str) -> tuple[str, ...]:
    """The requirements of the last `pip install` line, whether it is a command or a comment; none without one.

    The clone, `.`, counts as the package of that name.
    """
    lines = re.findall(r"^\s*(?:[$#] )?pip install (.+)", text, flags=re.MULTILINE)
    words = shlex.split(lines[-1], comments=True) if lines else []
    return tuple(re.sub(r"^\.(?=\[|$)", "robustrag-integrations", word) for word in words)


def extras(needs: tuple[str, ...]) -> set[str]:
    """The extras of this package among some requirements."""
    named = [re.fullmatch(r"robustrag-integrations(?:\[(.+)\])?", need) for need in needs]
    return {extra for found in named if found and found[1] for extra in found[1].split(",")}


def examples() -> dict[Path, tuple[str, ...]]:
    """What each example needs, as its docstring says; of a configuration, its comments."""
    found = {}
    for path in sorted((ROOT / "examples").iterdir()):
        if path.suffix in {".py", ".yaml"}:
            text = path.read_text(encoding="utf-8")
            found[path] = installed(ast.get_docstring(ast.parse(text)) or "" if path.suffix == ".py" else text)
    return found


def programs() -> list[Path]:
    """The examples that are run by themselves."""
    return [path for path in examples() if path.suffix == ".py" and not path.stem.endswith("_library")]
