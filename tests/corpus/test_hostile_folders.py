"""Folders that somebody else writes into while they are read: what is bad in them costs itself and is named."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from robustrag_integrations.corpus import CorpusError, files, read_documents, reading
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
    return read_documents([str(folder)], on_file=lambda done, total: swap() if done == before else None)


def in_place_of(path: Path, make: Callable[[Path], object]) -> None:
    path.rename(path.with_name(f"{path.name}.old"))
    make(path)


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize("swapped", ["a.txt", "team/b.txt", "team/deeper/b.txt", "team/deeper", "team"])
def test_nothing_outside_is_read_through_a_link_that_was_put_in_place(docs: Path, swapped: str, absolute: bool) -> None:
    target = docs.parent / "outside" / {"team": ".", "team/deeper": "deeper"}.get(swapped, "b.txt")
    linked = target if absolute else os.path.relpath(target, (docs / swapped).parent)
    reading = reading_while(docs, lambda: in_place_of(docs / swapped, lambda path: path.symlink_to(linked)))
    assert SECRET not in texts(reading)
    assert all(swapped in skipped.reason and "cannot read" in skipped.reason for skipped in reading.skipped)
    assert len(texts(reading)) + len(reading.skipped) == 3
    assert reading.skipped


def test_nothing_outside_is_read_when_the_named_folder_itself_becomes_a_link(docs: Path) -> None:
    (docs.parent / "outside" / "a.txt").write_text(SECRET)
    reading = reading_while(docs, lambda: in_place_of(docs, lambda path: path.symlink_to(docs.parent / "outside")))
    assert texts(reading) == ["fine", "good", "good, too"]


@pytest.mark.parametrize("swapped", ["a.txt", "team/b.txt", "team/deeper", "team"])
def test_a_pipe_that_was_put_in_place_is_not_waited_for(docs: Path, swapped: str) -> None:
    reading = reading_while(docs, lambda: in_place_of(docs / swapped, os.mkfifo))
    assert len(texts(reading)) + len(reading.skipped) == 3
    assert reading.skipped
    assert all(swapped in skipped.reason for skipped in reading.skipped)


def test_a_named_file_that_became_a_link_or_a_pipe_is_an_error(docs: Path) -> None:
    for make in (lambda path: path.symlink_to(docs.parent / "outside" / "b.txt"), os.mkfifo):
        swap = lambda make=make: in_place_of(docs / "a.txt", make)  # noqa: E731
        with pytest.raises(CorpusError, match=r"cannot read .*a\.txt: (a symbolic link stands|it is no plain file)"):
            read_documents([str(docs / "a.txt")], on_file=lambda *_, swap=swap: swap())
        (docs / "a.txt").unlink()
        (docs / "a.txt.old").rename(docs / "a.txt")


def test_files_and_folders_that_vanish_cost_themselves(docs: Path) -> None:
    reading = reading_while(docs, lambda: shutil.rmtree(docs / "team"))
    assert texts(reading) == ["fine"]
    assert [skipped.reason.rpartition(": ")[2] for skipped in reading.skipped] == ["No such file or directory"] * 2


def test_files_that_grow_after_the_search_are_bounded_together(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_READING", 5000)

    def grow() -> None:
        for name in ("a.txt", "team/b.txt", "team/deeper/b.txt"):
            (docs / name).write_text("more " * 500)

    found = reading_while(docs, grow)
    assert len(texts(found)) == 2
    assert ["has grown since it was found" in skipped.reason for skipped in found.skipped] == [True]


def test_a_churning_folder_gives_nothing_from_outside_and_does_not_hang(docs: Path) -> None:
    for number in range(20):
        (docs / "team" / f"m{number}.txt").write_text("mine")
    stop = threading.Event()

    def churn() -> None:
        outside = docs.parent / "outside"
        swaps: list[tuple[Path, Callable[[Path], object]]] = [
            (docs / "team" / "b.txt", lambda path: path.symlink_to(outside / "b.txt")),
            (docs / "team" / "m7.txt", os.mkfifo),
            (docs / "team" / "deeper", lambda path: path.symlink_to(outside / "deeper")),
        ]
        while not stop.is_set():
            for path, make in swaps:
                with suppress(OSError):
                    in_place_of(path, make)
                with suppress(OSError):
                    path.unlink()
                    path.with_name(f"{path.name}.old").rename(path)

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        end = time.monotonic() + 2
        rounds = 0
        while time.monotonic() < end:
            assert SECRET not in texts(read_documents([str(docs)]))
            rounds += 1
    finally:
        stop.set()
        churning.join()
    assert rounds > 3


# Bad folders


@contextmanager
def without_privileges() -> Iterator[None]:
    """As somebody for whom permissions count."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_read_costs_itself(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.parent)
    docs.parent.chmod(0o755)
    (docs / "team").chmod(0)
    try:
        with without_privileges():
            reading = read_documents(["docs"])
    finally:
        (docs / "team").chmod(0o755)
    assert texts(reading) == ["fine"]
    assert [skipped.reason for skipped in reading.skipped] == ["the folder docs/team is not read: Permission denied"]


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


def test_a_folder_of_too_many_files_costs_itself(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 10)
    fill(docs / "junk", 11)
    reading = read_documents([str(docs)])
    assert texts(reading) == ["fine", "good", "good, too"]
    assert [skipped.reason for skipped in reading.skipped] == [
        f"the folder {docs / 'junk'} is not read: it holds more than 10 files"
    ]
    reading = read_documents([str(docs / "junk"), str(docs / "team")])
    assert texts(reading) == ["good", "good, too"]
    assert [Path(skipped.path).name for skipped in reading.skipped] == ["junk"]


@pytest.mark.parametrize("spread", ["one level", "two levels"])
def test_of_too_many_files_in_many_folders_the_heaviest_folder_goes(
    docs: Path, monkeypatch: pytest.MonkeyPatch, spread: str
) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 10)
    (docs / "junk").mkdir()
    for number in range(4):
        fill(docs / ("junk" if spread == "two levels" else ".") / f"junk{number}", 3)
    reading = read_documents([str(docs)])
    assert {"fine", "good", "good, too"} <= set(texts(reading)) or spread == "one level"
    assert len(texts(reading)) <= 10
    assert reading.skipped
    assert all("with it there are more than 10 files" in skipped.reason for skipped in reading.skipped)


def test_a_named_file_is_read_whatever_folders_hold(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 10)
    junk = fill(docs.parent / "junk", 20)
    reading = read_documents([str(junk), str(docs / "a.txt")])
    assert texts(reading) == ["fine"]
