"""The wheel in a clean environment for each extra on each Python of this machine: `make test-pythons`.

Light extras only; `make test-installs` tries those that bring torch, on one Python. PYTHONS names other
interpreters, with spaces between. That none but one is here is said, and is no failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.installs.__main__ import HERE, FailedError, call
from tests.installs.pages import ROOT

VERSIONS = ("3.10", "3.11", "3.12", "3.13")  # as pyproject.toml's requires-python has them
HEAVY = {"local", "playground", "embedding", "all"}
# What must be there with an extra, beyond what needs none.
IMPORTS = {
    "": "robustrag_integrations.defenses.keyword",
    "cli": "robustrag_integrations.corpus.retrieval, bm25s, pypdf, bs4, docx, langchain_text_splitters",
    "eval": "robustrag_integrations.evaluation.show.tables, scipy, yaml, tqdm",
    "keyword": "spacy",
    "langchain": "langchain_robustrag",
    "langchain-agents": "langchain_robustrag.middleware",
    "langchain-classic": "langchain_robustrag, langchain_classic.chains",
    "llamaindex": "llamaindex_robustrag",
    "mcp": "robustrag_integrations.cli.mcp, mcp",
    "openai": "robustrag_integrations.models.server.model, httpx",
    "otel": "opentelemetry.trace",
    "remote": "robustrag_integrations.models.server.model, httpx, transformers, jinja2",
    "serve": "robustrag_integrations.serve.app",
    "site": "tldextract",
}
_TRIAL = """
import {modules}
import robustrag_integrations as robustrag
assert "site-packages" in robustrag.__file__, robustrag.__file__
answer = robustrag.KeywordAggregation(robustrag.CallableModel(lambda prompt: "Anna Berg")).answer(
    "Who won?", [robustrag.Passage("Anna Berg won.", source=f"site-{{n}}.example") for n in range(7)]
)
assert answer.radius >= 1 and answer.text == "Anna Berg", (answer.text, answer.radius)
"""


def interpreters() -> dict[str, str]:
    """Those of `VERSIONS` that are here and run, version to path."""
    named = os.environ.get("PYTHONS", "").split()
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    tried = named or [*(f"python{version}" for version in VERSIONS), *map(str, kept.glob("3.*/bin/python"))]
    found: dict[str, str] = {}
    for path in tried:
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        try:
            done = subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError):  # a stand-in that does not run
            continue
        if done.stdout.strip() in VERSIONS:
            found.setdefault(done.stdout.strip(), path)
    return found


def try_out(version: str, python: str, extra: str) -> str | None:
    """Install the wheel with an extra, and use it; None, or what went wrong."""
    folder = HERE / "pythons" / f"{version}-{extra or 'none'}"
    [wheel] = (HERE / "wheels").glob("robustrag_integrations-*.whl")
    asked = f"robustrag-integrations{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
    alone = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    try:
        call([str(ROOT / ".ci" / "install"), str(folder), asked], ROOT, {**os.environ, "PYTHON": python})
        call([f"{folder}/bin/python", "-I", "-c", _TRIAL.format(modules=IMPORTS[extra])], folder, alone)
    except FailedError as error:
        return f"Python {version}, extra {extra or 'none'}: {error}"
    shutil.rmtree(folder)
    return None


def main() -> int:
    """Try all out, two at a time; 1 if something failed."""
    shutil.rmtree(HERE / "pythons", ignore_errors=True)
    here = interpreters()
    print(f"Python {', '.join(here) or 'of none of the versions'}; not here: {set(VERSIONS) - set(here) or 'none'}")
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(try_out, v, path, extra) for v, path in here.items() for extra in IMPORTS]
        failed = [message for made in tries if (message := made.result())]
    print(*failed, sep="\n")
    print(f"{len(tries)} environments, {len(failed)} failed")
    return 1 if failed or not here else 0


if __name__ == "__main__":
    sys.exit(main())
