"""`robustrag ask --method decoding` on a server that gives token probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra local")

from tests.helpers.logprob_server import LogprobServer
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer


def test_decoding_on_a_server_answers_with_the_tokenizer_that_is_named(command, docs: Path, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    name = f"openai-completions:m@{tmp_path / 'tokenizer'}"
    with LogprobServer(tiny_model("llama"), tokenizer) as server:
        told = command(
            "ask",
            "Who runs the mill?",
            *("--docs", docs, "--method", "decoding", "--model", name, "--base-url", server.url, "--json"),
        )
    assert told.code in (0, 3)
    assert told.data["answer"]["method"] == "decoding"
    assert told.data["answer"]["sources"][0]["error"] is None
    assert any("server" in warning for warning in told.data["answer"]["warnings"])
    assert all(1 <= request["max_tokens"] <= 12 and request["model"] == "m" for request in server.requests)
