from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.evaluation.run.cache import CacheError, CallCache, metered
from robustrag_integrations.models.base import Response
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.scripted import ScriptedModel
from tests.needs import needing


def prompts(*texts: str) -> list[Prompt]:
    return [Prompt(f"read: {text}!", (6, 6 + len(text))) for text in texts]


@pytest.fixture
def cache(tmp_path):
    opened = CallCache(tmp_path)
    yield opened
    opened.close()


def test_a_prompt_is_asked_once(cache) -> None:
    model = ScriptedModel(str.upper)
    asked = metered(model, "f", cache)
    assert [r.text for r in asked.generate(prompts("a", "b"), "isolated")] == ["A", "B"]
    assert [r.text for r in asked.generate(prompts("b", "c", "c"), "isolated")] == ["B", "C", "C"]
    assert len(model.asked) == 3


def test_another_model_role_or_prompt_is_another_call(cache) -> None:
    model = ScriptedModel(str.upper)
    metered(model, "f", cache).generate(prompts("a"), "isolated")
    metered(model, "other", cache).generate(prompts("a"), "isolated")
    metered(model, "f", cache).generate(prompts("a"), "final")
    metered(model, "f", cache).generate([Prompt("read: a!", (5, 7))], "isolated")
    assert len(model.asked) == 4


def test_failures_are_not_kept(cache) -> None:
    said: dict[str, str | None] = {"a": None}
    asked = metered(ScriptedModel(lambda text: said[text]), "f", cache)
    assert asked.generate(prompts("a"), "isolated")[0].text is None
    said["a"] = "A"
    assert asked.generate(prompts("a"), "isolated")[0].text == "A"


def test_a_model_that_samples_is_asked_every_time(cache) -> None:
    calls = []
    model = metered(CallableModel(lambda p: str(calls.append(p)), samples=True), "f", cache)
    for _ in range(2):
        model.generate(prompts("a"), "isolated")
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["value = 'not json'", "value = NULL"])
def test_a_damaged_entry_is_made_again(tmp_path, damage) -> None:
    model = ScriptedModel(str.upper)
    with_cache = CallCache(tmp_path)
    metered(model, "f", with_cache).generate(prompts("a"), "isolated")
    with_cache.close()
    with sqlite3.connect(tmp_path / "calls.sqlite3") as db:
        db.execute(f"UPDATE calls SET {damage}")
    db.close()
    again = CallCache(tmp_path)
    for _ in range(2):
        assert metered(model, "f", again).generate(prompts("a"), "isolated")[0].text == "A"
    assert len(model.asked) == 2


def test_a_file_that_is_no_database_is_named(tmp_path) -> None:
    (tmp_path / "calls.sqlite3").write_bytes(b"garbage" * 1000)
    with pytest.raises(CacheError, match="delete it, give another --cache"):
        CallCache(tmp_path)


@needing("POSIX")
@pytest.mark.parametrize("name", ["calls.sqlite3", "calls.sqlite3-wal"])
def test_a_link_is_refused_and_what_it_leads_to_left_as_it_is(tmp_path, name) -> None:
    target = tmp_path / "other.db"
    target.write_bytes(b"")
    target.chmod(0o644)
    folder = tmp_path / "cache"
    folder.mkdir()
    os.symlink(target, folder / name)
    with pytest.raises(CacheError, match=f"{name}' is a link"):
        CallCache(folder)
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"", 0o644)


@needing("POSIX")
def test_only_the_owner_can_read_the_cache(tmp_path) -> None:
    before = os.umask(0)
    try:
        folder = tmp_path / "calls"
        cache = CallCache(folder)
        cache.put({"k": Response("secret")})
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        cache.close()
    finally:
        os.umask(before)
    assert "calls.sqlite3-wal" in modes
    assert set(modes.values()) == {0o600}


def test_processes_share_one_cache(tmp_path) -> None:
    """Each finds what it has put, whatever the others write meanwhile."""
    program = (
        "import sys\n"
        "from robustrag_integrations.evaluation.run.cache import CallCache\n"
        "from robustrag_integrations.models.base import Response\n"
        "cache = CallCache(sys.argv[1])\n"
        "for n in range(60):\n"
        "    cache.put({f'k{n}': Response(f'text {n}')})\n"
        "    assert [found.text for found in cache.get([f'k{n}'])] == [f'text {n}']\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(2)]
    assert [each.wait(120) for each in running] == [0, 0]
