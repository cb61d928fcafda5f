"""What red-team tools send fits the endpoint: their files in `examples/redteam`, without the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.serve.chat import chat_request
from robustrag_integrations.serve.endpoint import Limits

FOLDER = Path(__file__).parents[2] / "examples" / "redteam"


def bodies(name: str) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((FOLDER / name).read_text())
    return [provider["config"]["body"] for provider in found.get("providers", []) + found.get("targets", [])]


@pytest.mark.parametrize("name", ["promptfoo.yaml", "promptfoo-redteam.yaml"])
def test_promptfoo_asks_what_the_endpoint_answers(name: str) -> None:
    assert bodies(name)
    for body in bodies(name):
        asked = chat_request(body, Limits(), documents_allowed=True)
        assert asked.model in ("vanilla", "robustrag-consensus")
        assert [d.text for d in asked.documents] == ["{{document}}"]
        assert asked.retrieve
