"""What tests of several methods share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def local():
    """A model with random weights of this process, shared by a file's tests."""
    pytest.importorskip("torch")
    from robustrag_integrations import LocalModel
    from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

    return LocalModel(tiny_model("llama"), tiny_tokenizer(), max_context_tokens=24, max_new_tokens=4, chat=False)
