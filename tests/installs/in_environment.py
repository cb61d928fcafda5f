"""Runs the snippets with one install line, in the environment that has what it names.

The snippets of a page share their names, in order, as a reader's session does.
"""

from __future__ import annotations

import ast
import asyncio
import atexit
import inspect
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.installs.pages import PAGES, Snippet, extras, snippets
from tests.installs.stand_ins import server, stand_ins, write_files

ADDRESS = "http://localhost:8000/v1"


def run_python(snippet: Snippet, text: str, names: dict[str, Any]) -> None:
    """Run a block, `await` included."""
    code = compile(text, f"{snippet.page}, snippet at line {snippet.line}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code, names)
    if inspect.iscoroutine(waiting):
        asyncio.run(waiting)


def run_commands(snippet: Snippet, address: str, model: str) -> None:
    """Run the commands of a block in this process: loading torch for each would take minutes."""
    from robustrag_integrations.cli import main

    for words in snippet.commands:
        if words[0] == "curl":
            print("$", *words, flush=True)
            subprocess.run(["curl", "--fail", "--silent", "--show-error", *words[1:]], check=True)
            continue
        if words[:2] in (["robustrag", "serve"], ["robustrag", "playground"]):
            print("$", *words, "&", flush=True)
            keep_serving(words)
            continue
        if words[0] != "robustrag" or not shutil.which("robustrag"):
            raise ValueError(f"{snippet.page}, line {snippet.line}: no way to run {words[0]} here")
        given = [word.replace(ADDRESS, address).replace(":NAME", f":{model}") for word in words[1:]]
        print("$", *words, flush=True)
        code = main(given)
        if code not in (0, 3):  # answered, abstained
            raise RuntimeError(f"{snippet.page}, line {snippet.line}: {' '.join(words)} ended with {code}")


def keep_serving(words: list[str]) -> None:
    """Start a server in a process of its own, wait until it listens, and stop it when this process ends.

    Raises:
        RuntimeError: it ended before.
    """
    serving = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    atexit.register(serving.kill)
    assert serving.stderr is not None
    said = ""
    for line in serving.stderr:
        said += line
        if "listening on" in line:
            threading.Thread(target=serving.stderr.read, daemon=True).start()
            return
    raise RuntimeError(f"{' '.join(words)} ended:\n{said}")


def main(needs: tuple[str, ...]) -> None:
    """Run what stands under this install line, on all pages."""
    import robustrag_integrations
    from robustrag_integrations.reader import reader_path

    assert "site-packages" in robustrag_integrations.__file__, "the installed package is what is tested"
    named = extras(needs)
    write_files(Path.cwd())
    if named & {"local", "remote"}:
        shutil.copytree(reader_path(), "my-model")
    reader = reader_path() if "remote" in named else None
    with server(reader) as listening:
        for page in PAGES:
            names = stand_ins(named)
            for snippet in [s for s in snippets(page) if s.needs == needs and s.is_run]:
                print(f"--- {page}, line {snippet.line}", flush=True)
                if snippet.language == "python":
                    run_python(snippet, snippet.text.replace(ADDRESS, listening.url), names)
                else:
                    run_commands(snippet, listening.url, f"NAME@{reader}" if reader else "NAME")
