from __future__ import annotations

import os
import stat

import pytest

from robustrag_integrations.evaluation.run.journal import Journal, JournalError
from tests.evaluation.rows import rows_in
from tests.needs import needing


def test_rows_are_on_disk_as_soon_as_they_are_appended(tmp_path) -> None:
    with Journal(tmp_path / "run.jsonl") as journal:
        journal.append({"a": "ä\u2028\x1b"})
        assert rows_in(tmp_path / "run.jsonl") == [{"a": "ä\u2028\x1b"}]
    assert (tmp_path / "run.jsonl").read_bytes().isascii()


@pytest.mark.parametrize("cut", [1, 7, 11])
def test_a_torn_last_line_is_dropped_wherever_it_was_torn(tmp_path, cut) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"n": 1}\n' + b'{"n": 22222}\n'[:cut])
    before = path.read_bytes()
    with Journal(path) as journal:
        assert list(journal.rows) == [{"n": 1}]
        assert path.read_bytes() == before, "until a row is written the file may be somebody else's"
        journal.append({"n": 2})
    assert rows_in(path) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("text", ["my notes", '{"n": 1}\n[2]\n{"n": 3}\n', '{"a": 1}'])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path, text) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(JournalError):
        Journal(path)
    assert path.read_text() == text


def test_two_runs_cannot_write_to_one_file(tmp_path) -> None:
    pytest.importorskip("fcntl")
    with Journal(tmp_path / "run.jsonl"), pytest.raises(JournalError, match="another run is writing"):
        Journal(tmp_path / "run.jsonl")
    Journal(tmp_path / "run.jsonl").close()


def test_replacing_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch) -> None:
    path = tmp_path / "run.jsonl"
    with Journal(path) as journal:
        journal.append({"n": 1})
        with monkeypatch.context() as patched:
            patched.setattr("os.replace", _fail)
            with pytest.raises(JournalError, match="cannot replace"):
                journal.replace([{"n": 2}])
        assert rows_in(path) == [{"n": 1}]
        journal.replace([{"n": 2}])
    assert rows_in(path) == [{"n": 2}]
    assert list(tmp_path.iterdir()) == [path]


def _fail(*args: object) -> None:
    raise OSError(28, "No space left on device")


@needing("POSIX")
@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_only_the_owner_can_read_new_results_from_the_beginning_to_the_end(tmp_path, umask) -> None:
    path = tmp_path / "run.jsonl"
    before = os.umask(umask)
    modes = []
    try:
        with Journal(path) as journal:
            modes.append(stat.S_IMODE(path.stat().st_mode))
            journal.append({"n": 1})
            journal.replace(_looking_at(tmp_path / ".run.jsonl.part", modes))
    finally:
        os.umask(before)
    assert [*modes, stat.S_IMODE(path.stat().st_mode)] == [0o600] * 3


def _looking_at(path, modes):
    modes.append(stat.S_IMODE(path.stat().st_mode))
    yield {"n": 2}


@needing("POSIX")
def test_a_link_in_the_drafts_place_is_not_followed(tmp_path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".run.jsonl.part").symlink_to(tmp_path / "other")
    with Journal(tmp_path / "run.jsonl") as journal:
        journal.replace([{"n": 1}])
    assert (tmp_path / "other").read_text() == "mine"
    assert rows_in(tmp_path / "run.jsonl") == [{"n": 1}]
