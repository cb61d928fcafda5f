"""A model that reads prompts otherwise than decoder-only models do is refused before it answers anything."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from robustrag_integrations import KeywordAggregation, LocalModel, ModelError  # noqa: E402
from robustrag_integrations.text.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_tokenizer  # noqa: E402

COMMON = {"vocab_size": 400, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BERT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
WRONG = {
    "Rwkv": {"hidden_size": 64, "num_hidden_layers": 2, "attention_hidden_size": 64, "intermediate_size": 96},
    "Roberta": {**BERT, "is_decoder": True, "initializer_range": 0.3, "max_position_embeddings": 600},
}


def of(name: str, kind: str = "CausalLM", *, shares: bool = True, **settings: object) -> LocalModel:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**COMMON, **settings)
    model = getattr(transformers, f"{name}For{kind}")(config).eval()
    return LocalModel(model, tiny_tokenizer(), max_context_tokens=64, max_new_tokens=4, stop=(), share_prefixes=shares)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("shares", [True, False])
def test_a_model_that_keeps_no_such_cache_or_counts_positions_otherwise_is_refused(name: str, shares: bool) -> None:
    model = of(name, shares=shares, **WRONG[name])
    with pytest.raises(ModelError, match=f"{name}ForCausalLM reads a token behind its cache otherwise"):
        KeywordAggregation(model).answer("Who built it?", ["Brevik built it.", "Anna."])


@pytest.mark.parametrize("name", ["Ernie", "Electra"])
def test_a_model_whose_tokens_see_those_after_them_is_refused(name: str) -> None:
    model = of(name, **BERT, initializer_range=0.3)
    with pytest.raises(ModelError, match="as encoders do"):
        KeywordAggregation(model).answer("Who built it?", ["Brevik built it.", "Anna."])
    as_decoder = of(name, **BERT, initializer_range=0.3, is_decoder=True)
    assert KeywordAggregation(as_decoder).answer("Who built it?", ["Brevik built it.", "Anna."]).sources


def test_an_encoder_decoder_is_refused_with_its_reason() -> None:
    model = of("T5", "ConditionalGeneration", d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4)
    with pytest.raises(ModelError, match=r"cannot be read as a decoder-only language model.*CallableModel"):
        KeywordAggregation(model).answer("Who built it?", ["Brevik built it.", "Anna."])


def test_steps_behind_a_long_prompt_are_tried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = of("Llama", shares=False, **BERT, initializer_range=0.3)
    whole = transformers.LlamaForCausalLM.forward

    def forward(self: object, input_ids: object = None, **options: object) -> object:
        """A model whose cached steps are wrong behind more than 128 columns."""
        found = whole(self, input_ids=input_ids, **options)
        if input_ids.shape[-1] == 1 and options["attention_mask"].shape[-1] > 128:  # type: ignore[attr-defined]
            found.logits = found.logits.roll(1, -1)
        return found

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", forward)
    with pytest.raises(ModelError, match="reads a token behind its cache otherwise"):
        KeywordAggregation(model).answer("Who built it?", ["Brevik built it.", "Anna."])


def test_noise_in_long_passes_and_noise_that_begins_later_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = of("Llama", shares=False, **BERT, initializer_range=0.3)
    whole, shortest = transformers.LlamaForCausalLM.forward, [1_000]

    def forward(self: object, input_ids: object = None, **options: object) -> object:
        found = whole(self, input_ids=input_ids, **options)
        if input_ids.shape[-1] >= shortest[0]:  # type: ignore[attr-defined]
            found.logits = found.logits + 1e-6 * torch.randn(found.logits.shape)
        return found

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", forward)
    model.generate([prompts_for("short_answer").isolated.render(context="x", query="y")] * 2, "isolated")
    assert model.repeats.model == "deterministic"
    shortest[0] = 100
    model.forget_prefixes()
    model.generate([prompts_for("short_answer").isolated.render(context="x", query="y")] * 2, "isolated")
    assert model.repeats.model == "samples"
