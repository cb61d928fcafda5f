"""A tree behind all rows of a session: its numbers are those of steps."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.base import Distributions  # noqa: E402
from robustrag_integrations.models.local.cache import BatchKVCache  # noqa: E402
from robustrag_integrations.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402

QUERY = "Who built the Halden Light?"
PASSAGES = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra. " * 4]
PREFIXES = [[(40,), (41,), (42,)], [(40, 7), (41, 50), (41, 51), (42, 7)], [(41, 51, 3)]]


def session_of(architecture: str, **settings: object):
    model = LocalModel(tiny_model(architecture, **settings), tiny_tokenizer(), max_context_tokens=96, stop=())
    prompts = prompts_for("short_answer")
    isolated = [prompts.isolated.render(context=text, query=QUERY) for text in PASSAGES]
    return model.open_session(isolated, prompts.no_retrieval.render(query=QUERY), 6)


def together(found: Distributions) -> np.ndarray:
    return np.vstack([found.groups, found.no_retrieval])


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen3", "gemma2", "gemma3", "phi3", "gpt2", "neox"])
def test_its_numbers_are_those_of_steps(architecture: str) -> None:
    session = session_of(architecture)
    tree = session.tree()
    for level in PREFIXES:
        for prefix, found in zip(level, tree.grow(level), strict=True):
            stepping = session.fork()
            for token in prefix:
                stepped = stepping.append(token)
            assert np.abs(together(found) - together(stepped)).max() < 2e-5


def test_nothing_is_laid_out_for_a_tree_that_half_precision_rules_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of("llama", dtype=torch.bfloat16)

    def laid_out(*_: object) -> None:
        raise AssertionError("rows were laid out")

    monkeypatch.setattr(BatchKVCache, "filled_up", laid_out)
    assert session.tree() is None
