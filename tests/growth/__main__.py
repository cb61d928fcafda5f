"""The deeper sweep: `python -m tests.growth [NAME ...]` tries more and longer texts, on functions of these names."""

from __future__ import annotations

import contextlib
import io
import sys

from tests.growth.found import covered, modules
from tests.growth.grown import MORE, UNITS, steep

LONGEST = 64_000


def main(names: list[str]) -> int:
    """Print what is found; 1 if anything is."""
    found = 0
    for module in modules():
        functions, unsaid = covered(module)
        print(*unsaid, sep="\n", end="\n" if unsaid else "")
        for function in functions:
            if function.name.startswith(tuple(names or [""])):
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    told = [*map(str, steep(function, (*UNITS, *MORE), LONGEST))]
                print(*told, sep="\n", end="\n" if told else "", flush=True)
                found += len(told)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
