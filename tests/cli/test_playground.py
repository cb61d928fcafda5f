"""`robustrag playground`: which models it offers, and where it listens."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been served."""
    for library in ("starlette", "uvicorn", "bm25s"):
        pytest.importorskip(library, reason="the extra playground is not installed")
    from robustrag_integrations.cli import playground
    from robustrag_integrations.playground import app

    found: list[Any] = []
    create = app.create_app
    monkeypatch.setattr(app, "create_app", lambda *args, **more: found.append((args, more)) or create(*args, **more))
    monkeypatch.setattr(playground, "serve_until_stopped", lambda app, socket: None)
    return found


def test_it_offers_the_bundled_reader_on_this_machine_alone(
    served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["playground", "--port", "0"]) == 0
    [((models, _, start), _)] = served
    assert list(models.named) == ["bundled"]
    assert len(start.rows) > start.top_k
    assert not any(row.planted for row in start.rows)
    assert "http://127.0.0.1:" in capsys.readouterr().err


def test_models_are_offered_by_name_and_the_address_goes_to_those_that_take_it(served: list[Any]) -> None:
    given = ["--model", "bundled", "--model", "openai:m", "--base-url", "http://localhost:1/v1"]
    assert main(["playground", "--port", "0", *given]) == 0
    [((models, _, _), _)] = served
    assert {name: named.base_url for name, named in models.named.items()} == {
        "bundled": None,
        "openai:m": "http://localhost:1/v1",
    }


def test_it_begins_empty_with_documents_of_ones_own(served: list[Any], docs: Path) -> None:
    assert main(["playground", "--port", "0", "--docs", str(docs)]) == 0
    [((_, library, start), _)] = served
    assert (start.question, start.rows) == ("", ())
    assert {p.origin for p in library.search("Who runs the mill?")} >= {"note0.txt", "note4.txt"}


def test_wrong_usage_is_named(served: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["playground", "--base-url", "http://localhost:1/v1"]) == 2
    assert "--base-url: no --model here takes it" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["playground", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen" in capsys.readouterr().err
    assert served == []
