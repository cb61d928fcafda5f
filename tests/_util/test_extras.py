"""An error about a missing extra names a command that works where the package came from."""

from __future__ import annotations

import importlib.metadata
from types import SimpleNamespace

import pytest

from robustrag_integrations._util.errors import missing

COMMIT = '{"url": "https://example.org/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}'


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        (None, "pip install 'robustrag-integrations[eval]'"),
        ("not JSON", "pip install 'robustrag-integrations[eval]'"),
        (
            '{"url": "file:///home/me/it", "dir_info": {"editable": true}}',
            "pip install 'robustrag-integrations[eval] @ file:///home/me/it'",
        ),
        (COMMIT, "pip install 'robustrag-integrations[eval] @ git+https://example.org/r.git'"),
    ],
)
def test_the_command_installs_from_the_same_place(
    monkeypatch: pytest.MonkeyPatch, recorded: str | None, command: str
) -> None:
    found = SimpleNamespace(read_text=lambda name: recorded if name == "direct_url.json" else None)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
    assert str(missing("it needs scipy", "eval")) == f"it needs scipy: {command}"
