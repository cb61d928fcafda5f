"""A tree behind all rows of a session: what they share stands once in front, and the numbers are those of steps."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.base import Distributions  # noqa: E402
from robustrag_integrations.models.local import rows  # noqa: E402
from robustrag_integrations.models.local.session import LocalTree  # noqa: E402
from robustrag_integrations.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402

QUERY = "Who built the Halden Light?"
PASSAGES = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra. " * 4]
PREFIXES = [[(40,), (41,), (42,)], [(40, 7), (41, 50), (41, 51), (42, 7)], [(41, 51, 3)]]


def session_of(architecture: str, monkeypatch: pytest.MonkeyPatch, *, worth: int, **settings: object):
    monkeypatch.setattr(rows, "WORTH_KEEPING_ONCE", worth)
    model = LocalModel(tiny_model(architecture, **settings), tiny_tokenizer(), max_context_tokens=96, stop=())
    prompts = prompts_for("short_answer")
    isolated = [prompts.isolated.render(context=text, query=QUERY) for text in PASSAGES]
    return model.open_session(isolated, prompts.no_retrieval.render(query=QUERY), 6)


def together(found: Distributions) -> np.ndarray:
    return np.vstack([found.groups, found.no_retrieval])


@pytest.mark.parametrize("worth", [8, 10_000], ids=["kept once", "in every row"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen3", "gemma2", "gemma3", "phi3", "gpt2", "neox"])
def test_its_numbers_are_those_of_steps(architecture: str, worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(architecture, monkeypatch, worth=worth)
    tree = session.tree()
    for level in PREFIXES:
        for prefix, found in zip(level, tree.grow(level), strict=True):
            stepping = session.fork()
            for token in prefix:
                stepped = stepping.append(token)
            assert np.abs(together(found) - together(stepped)).max() < 2e-5


@pytest.mark.parametrize("groups", [1, 2])
def test_what_rows_share_is_not_copied(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"num_attention_heads": 4, "num_key_value_heads": groups, "hidden_size": 32}
    held = []
    for worth in (8, 10_000):
        session = session_of("llama", monkeypatch, worth=worth, **settings)
        tree = session.tree()
        assert isinstance(tree, LocalTree)
        cache, before = tree._tree._stem.cache, session._batch.before
        held.append(cache.lengths[0] + before)
        assert cache.shared is session._batch.cache.shared
        assert (before > 8, cache.shared is not None) == (worth == 8, worth == 8)
    assert held[0] == held[1]


def test_nothing_is_laid_out_for_a_tree_that_half_precision_rules_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of("llama", monkeypatch, worth=8, dtype=torch.bfloat16)

    def laid_out(*_: object) -> None:
        raise AssertionError("rows were laid out")

    monkeypatch.setattr(rows.BatchKVCache, "filled_up", laid_out)
    assert session.tree() is None
