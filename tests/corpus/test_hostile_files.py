"""Files made to stall or to fill the memory: each costs itself, within a budget, and the others are read."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from robustrag_integrations.corpus import extract, plain_text, read_documents, reading
from robustrag_integrations.corpus.limits import FileError, FileLimits
from robustrag_integrations.corpus.reading import text_in_process
from tests.helpers.documents import write_pdf
from tests.helpers.hostile_pdfs import ALL, many_operators, much_text
from tests.needs import or_skip

GENEROUS = FileLimits(seconds=20, characters=1 << 20, pages=100, memory=2 << 30)


def _put(folder: Path, **files: bytes) -> Path:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


@pytest.mark.parametrize("name", ALL)
def test_a_hostile_pdf_ends_within_its_budget(tmp_path: Path, name: str) -> None:
    _put(tmp_path, **{f"{name}__pdf": ALL[name](), "a__txt": b"fine"})
    write_pdf(tmp_path / "zz.pdf", "The mill is old.")
    began = time.monotonic()
    found = read_documents([str(tmp_path)])
    assert time.monotonic() - began < 60  # by the clock, and others use the machine too
    assert {"a.txt", "zz.pdf"} <= {document.id for document in found.documents}
    assert [Path(skipped.path).name for skipped in found.skipped] in ([], [f"{name}.pdf"])


def test_patience_with_hostile_pdfs_ends_and_grows_with_honest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[FileLimits] = []

    def refused(data: bytes, kind: str, limits: FileLimits, *, hidden: bool) -> tuple[str, int]:
        given.append(limits)
        raise FileError("no")

    monkeypatch.setattr(reading, "text_in_process", refused)
    monkeypatch.setattr(reading, "_SECONDS_LOST", 1e-9)
    _put(tmp_path, a__txt=b"fine", b__pdf=bytes(14_000), c__pdf=bytes(14_000), d__pdf=bytes(50 << 20))
    read_documents([str(tmp_path)])
    first, later, large = given
    assert 1.5 < first.seconds < 4
    assert later.seconds < 1.5
    assert later.characters < 2 << 20
    assert large.seconds > 500


def test_a_pdf_of_too_much_text_or_with_words_for_the_terminal_is_refused_harmlessly(tmp_path: Path) -> None:
    data = write_pdf(tmp_path / "a.pdf", "word " * 1000).read_bytes()
    with pytest.raises(FileError, match="more than 2,000 characters of text, too many for its"):
        text_in_process(data, "pdf", replace(GENEROUS, characters=2000))
    with pytest.raises(FileError) as caught:  # what a PDF says of itself reaches no terminal
        text_in_process(
            b"%PDF-1.7\n1 0 obj\n<< /\x1b[31m \x9b2J\nendobj\nstartxref\n\x1b]0;x\x07\n%%EOF", "pdf", GENEROUS
        )
    assert "\x1b" not in str(caught.value)


def test_a_pdf_that_fills_the_memory_costs_itself(tmp_path: Path) -> None:
    or_skip("MEMORY_LIMITS")
    with pytest.raises(FileError, match=r"memory|MemoryError|allocate"):
        text_in_process(much_text(), "pdf", FileLimits(seconds=60, characters=1 << 30, pages=9, memory=60 << 20))
    text, _ = text_in_process(write_pdf(tmp_path / "a.pdf", "The mill.").read_bytes(), "pdf", GENEROUS)
    assert "The mill." in text


def test_no_process_is_left_when_a_reading_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(many_operators())
    program = (
        "import os, signal, subprocess, sys, threading\n"
        "from robustrag_integrations.corpus import read_documents\n"
        "started, original = [], subprocess.Popen.__init__\n"
        "def seen(self, *args, **more):\n"
        "    started.append(self)\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return original(self, *args, **more)\n"
        "subprocess.Popen.__init__ = seen\n"
        "try:\n"
        "    read_documents([sys.argv[1]])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', [p.wait(10) < 0 for p in started])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.pdf")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "interrupted [True]", done.stderr


# Other kinds


@pytest.mark.parametrize("flaw", ["time", "memory", "end", "half a reply"])
def test_a_text_that_takes_too_long_or_too_much_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    """Any parser may have a flaw that one file finds: planted here, for files that say so."""
    if flaw == "memory":
        or_skip("MEMORY_LIMITS")
    cost = {
        "time": "_limit(0.3, 2 << 30); [0 for _ in iter(int, 1)]",
        "memory": "data * (1 << 30)",
        "end": "os._exit(1)",
        "half a reply": "out.write(b'+9'); out.flush(); os._exit(0)",
    }[flaw]
    own = Path(extract.__file__).read_text().replace("Path(__file__)", f"Path({extract.__file__!r})")
    call = "mark, text = reply(asked, data)"
    assert call in own
    program = tmp_path / "program.py"
    program.write_text(own.replace(call, f"if b'BOOM' in data: {cost}\n        {call}"))
    monkeypatch.setattr(extract, "__file__", str(program))
    docs = tmp_path / "docs"
    docs.mkdir()
    _put(docs, a__txt=b"one", b__txt=b"BOOM", c__md=b"BOOM", d__jsonl=b'{"text": "BOOM"}', e__jsonl=b'{"text": "two"}')
    found = read_documents([str(docs)])
    assert [document.text for document in found.documents] == ["one", "two"]
    assert [Path(skipped.path).name for skipped in found.skipped if skipped.whole] == ["b.txt", "c.md", "d.jsonl"]


def test_texts_share_one_process_and_none_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **more: object) -> None:
            super().__init__(*args, **more)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    _put(tmp_path, **{f"{n}__{ending}": b'{"text": "one"}' for n, ending in enumerate(("txt", "md", "jsonl") * 9)})
    assert len(read_documents([str(tmp_path)]).documents) == 27
    assert [process.returncode is not None for process in started] == [True]


def test_rows_beyond_the_limit_cost_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "MOST_ROWS", 5)
    rows, _ = plain_text.rows_of(b'{"text": "x"}\n' * 5, GENEROUS)
    assert rows.count('"x"') == 5
    rows, _ = plain_text.rows_of(b'{"text": "x"}\n' * 7, GENEROUS)
    assert rows.count('"x"') == 5
    assert '[6, "more than 5 rows; this one and those behind it are not read"]' in rows


def test_a_row_of_great_length_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "one"}\n{"text": "x", "a": [' + "{}," * (3 << 20) + '{}]}\n{"text": "two"}\n')
    found = read_documents([str(path)])
    assert [document.text for document in found.documents] == ["one", "two"]
    assert "line 2: longer than 8,388,608 characters" in found.skipped[0].reason


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "x", "a": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"text": "x", "n": 1e999999}',
        '{"text": ' + '{"a":' * 9000,
    ],
    ids=["deep", "infinite", "unclosed"],
)
def test_odd_rows_take_no_time_and_cost_nothing_else(tmp_path: Path, line: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(f'{line}\n{{"text": "fine"}}\n' * 20)
    began = time.process_time()
    found = read_documents([str(path)])
    assert time.process_time() - began < 5
    assert [document.text for document in found.documents].count("fine") == 20
