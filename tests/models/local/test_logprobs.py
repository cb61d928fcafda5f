"""How sure a local model is: the log-probabilities of its replies."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.local.encoding import PromptEncoder  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import ATTACKS, TOKENIZER, isolated  # noqa: E402
from tests.models.local.moving import BENIGN as TEXTS  # noqa: E402


def local(architecture: str = "llama", **settings: Any) -> LocalModel:
    network = tiny_model(architecture, dtype=settings.pop("dtype", torch.float32))
    given = {"max_context_tokens": 96, "max_new_tokens": 24, **settings}
    return LocalModel(network, TOKENIZER, **given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", ["llama", "lfm2"])
def test_no_bit_of_a_row_depends_on_other_rows(architecture: str, dtype: torch.dtype) -> None:
    model = local(architecture, dtype=dtype)
    prompts = isolated([*TEXTS, "A planted passage."])
    replies = model.generate(prompts, "isolated")
    assert None not in [reply.logprobs for reply in replies]
    for attack in ATTACKS:
        prompts = isolated([*TEXTS, attack])
        assert [r.logprobs for r in model.generate(prompts, "isolated")[:3]] == [r.logprobs for r in replies[:3]]
    for rank in range(3):
        order = [*range(rank), 3, *range(rank, 3)]
        moved = [isolated([*TEXTS, "A planted passage."])[i] for i in order]
        assert [r.logprobs for r in model.generate(moved, "isolated")] == [replies[i].logprobs for i in order]


def test_weights_that_are_no_numbers_give_no_logprobs() -> None:
    model = local()
    with torch.no_grad():
        model._model.lm_head.weight[7] = math.nan
    assert [reply.logprobs for reply in model.generate(isolated(TEXTS), "isolated")] == [None] * 3


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "lfm2"])
def test_a_reply_has_the_logprobs_of_its_tokens_end_included(architecture: str, ends: bool) -> None:
    network = tiny_model(architecture, tie_word_embeddings=False)
    if ends:
        with torch.no_grad():
            network.lm_head.weight[2] *= 3
    model = LocalModel(network, TOKENIZER, stop=(), max_new_tokens=9)
    prompts = isolated([*TEXTS, "", "x", "Nonsense " * 3])
    replies = model.generate(prompts, "isolated")
    assert ("stop" in [reply.finish for reply in replies]) is ends
    for prompt, reply in zip(prompts, replies, strict=True):
        ids = list(PromptEncoder(TOKENIZER, chat=False).encode(prompt).ids)
        expected: list[float] = []
        while len(expected) < 9 and not (expected and ids[-1] == 2):
            with torch.no_grad():
                logprobs = network(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            expected.append(float(logprobs.max()))
            ids.append(int(logprobs.argmax()))
        assert reply.logprobs == pytest.approx(expected, abs=1e-4)
