"""Folders that somebody else writes into while they are read: what is bad in them costs itself and is named."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from robustrag_integrations.corpus import CorpusError, read_documents, reading
from robustrag_integrations.corpus.reading import Reading
from tests.needs import needing

pytestmark = needing("POSIX")

SECRET = "a secret outside of the folder"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three files, beside one whose texts nobody named."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("b.txt", "m.md", "deeper"):
        (outside / name).write_text(SECRET) if "." in name else (outside / name).mkdir()
    (outside / "deeper" / "b.txt").write_text(SECRET)
    inside = tmp_path / "docs"
    (inside / "team" / "deeper").mkdir(parents=True)
    (inside / "a.txt").write_text("fine")
    (inside / "team" / "b.txt").write_text("good")
    (inside / "team" / "deeper" / "b.txt").write_text("good, too")
    return inside


def texts(reading: Reading) -> list[str]:
    return [document.text for document in reading.documents]


def reading_while(folder: Path, swap: Callable[[], None], before: int = 0) -> Reading:
    """What is read when something is swapped after the search, before the file of that number."""
    numbers, original = itertools.count(), reading._bytes_of

    def bytes_of(file: Any, descriptor: int | None) -> bytes:
        if next(numbers) == before:
            swap()
        return original(file, descriptor)

    with patch.object(reading, "_bytes_of", bytes_of):
        return read_documents([str(folder)])


def in_place_of(path: Path, make: Callable[[Path], object]) -> None:
    path.rename(path.with_name(f"{path.name}.old"))
    make(path)


# What is put in place of a file or folder that was listed, just before it is opened
SWAPS = [("a.txt", 0), ("team/b.txt", 1), ("team/deeper/b.txt", 2), ("team/deeper", 1), ("team", 0)]


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize(("swapped", "before"), SWAPS)
def test_nothing_outside_is_read_through_a_link_that_was_put_in_place(
    docs: Path, swapped: str, before: int, absolute: bool
) -> None:
    target = docs.parent / "outside" / {"team": ".", "team/deeper": "deeper"}.get(swapped, "b.txt")
    linked = target if absolute else os.path.relpath(target, (docs / swapped).parent)
    reading = reading_while(docs, lambda: in_place_of(docs / swapped, lambda path: path.symlink_to(linked)), before)
    assert SECRET not in texts(reading)
    assert [swapped in skipped.reason for skipped in reading.skipped] == [True]


def test_nothing_outside_is_read_when_the_named_folder_itself_becomes_a_link(docs: Path) -> None:
    (docs.parent / "outside" / "a.txt").write_text(SECRET)
    reading = reading_while(docs, lambda: in_place_of(docs, lambda path: path.symlink_to(docs.parent / "outside")))
    assert texts(reading) == ["fine", "good", "good, too"]


@pytest.mark.parametrize(("swapped", "before"), SWAPS)
def test_a_pipe_that_was_put_in_place_is_not_waited_for(docs: Path, swapped: str, before: int) -> None:
    reading = reading_while(docs, lambda: in_place_of(docs / swapped, os.mkfifo), before)
    assert [swapped in skipped.reason for skipped in reading.skipped] == [True]


# Bad folders


@pytest.mark.parametrize(("name", "levels"), [("d", 1500), ("d" * 250, 30)], ids=["deep", "long"])
def test_a_tree_that_is_too_deep_or_whose_path_is_too_long_costs_itself(docs: Path, name: str, levels: int) -> None:
    here = os.open(docs, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    try:
        reading = read_documents([str(docs)])
    finally:
        subprocess.run(["rm", "-rf", docs / name], check=True)  # it is too deep for Python
    assert texts(reading) == ["fine", "good", "good, too"]
    [skipped] = reading.skipped
    assert f"/{name[:50]}" in skipped.reason
    assert "more than 64 folders deep" in skipped.reason or "longer than 4,096 bytes" in skipped.reason


def fill(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number:03}.txt").write_text("junk")
    return folder


def test_a_folder_of_too_many_files_costs_itself_and_too_many_in_all_are_an_error(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_FILES", 10)
    fill(docs / "junk", 11)
    found = read_documents([str(docs)])
    assert texts(found) == ["fine", "good", "good, too"]
    [skipped] = found.skipped
    assert skipped.reason == f"the folder {docs / 'junk'} is not read: it holds more than 10 files"
    fill(docs / "junk", 10)
    (docs / "junk" / "010.txt").unlink()
    with pytest.raises(CorpusError, match="more than 10 files or 512 MiB; name fewer folders"):
        read_documents([str(docs)])
    monkeypatch.setattr(reading, "LARGEST_READING", 5)
    with pytest.raises(CorpusError, match="name fewer folders"):
        read_documents([str(docs / "team"), str(docs / "a.txt")])
