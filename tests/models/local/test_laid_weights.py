"""Weights laid side by side: the same numbers, and never those of weights that somebody has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import DynamicCache  # noqa: E402

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.local import laid_weights, llama, products  # noqa: E402
from robustrag_integrations.models.local.causal_lm import CausalLM  # noqa: E402
from robustrag_integrations.models.local.laid_weights import LaidWeights  # noqa: E402
from robustrag_integrations.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import BENIGN, QUERY, local  # noqa: E402
from tests.needs import or_skip  # noqa: E402

IDS = torch.arange(40)[None]


@pytest.fixture(autouse=True, params=["onednn", "mkl"])
def kernel(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """On every processor, and for the smallest product."""
    monkeypatch.setattr(laid_weights, "_WORK", 1)
    monkeypatch.setattr(products, "processor", lambda: "amd")
    monkeypatch.setattr(products, "_has_avx512", lambda: request.param == "onednn")
    if request.param == "onednn":
        or_skip("ONEDNN")
    else:
        or_skip("MKL")
    return str(request.param)


def model(**settings: Any) -> Any:
    return tiny_model("llama", **settings).eval()


def laid(network: Any) -> LaidWeights:
    return LaidWeights(network, llama.layers_of(network), CausalLM(network).fingerprint())


def logits(lm: CausalLM) -> Any:
    return lm(IDS, None, IDS, DynamicCache(), keep=5)


def plain_logits(network: Any) -> Any:
    return network(input_ids=IDS).logits[:, -5:]


@pytest.mark.parametrize("settings", [{}, {"attention_bias": True, "mlp_bias": True}, {"tie_word_embeddings": True}])
def test_products_are_those_of_the_layers(settings: dict[str, Any]) -> None:
    network = model(**settings)
    weights, inputs = laid(network), torch.randn(1, 9, network.config.hidden_size)
    attention = network.model.layers[1].self_attn
    with torch.inference_mode():
        found = weights.product(attention, inputs, None)
        each = [layer(inputs) for layer in (attention.q_proj, attention.k_proj, attention.v_proj)]
    assert found is not None
    assert torch.allclose(found, torch.cat(each, -1), atol=1e-5)


def test_with_onednn_few_rows_are_left_to_the_layers_unless_they_stand_for_many(kernel: str) -> None:
    network = model()
    weights, inputs = laid(network), torch.randn(2, 1, network.config.hidden_size)
    assert (weights.product(network.lm_head, inputs, None) is None) == (kernel == "onednn")
    assert weights.product(network.lm_head, inputs, 2**30) is not None
    assert weights.product(network.model, inputs, 2**30) is None


def of_tokens(network: Any, weights: LaidWeights) -> Any:
    layer = llama.Layer.of(network.model.layers[0])
    return weights.of_tokens(layer.asked.asking, network.model.embed_tokens.weight, layer.before_attention)


def test_what_the_first_layer_asks_of_a_token_is_what_it_asks_of_its_embedding() -> None:
    network = model(attention_bias=True)
    first = network.model.layers[0]
    with torch.inference_mode():
        given = first.input_layernorm(network.model.embed_tokens.weight)
        each = [layer(given) for layer in (first.self_attn.q_proj, first.self_attn.k_proj, first.self_attn.v_proj)]
    weights = laid(network)
    found = of_tokens(network, weights)
    assert torch.allclose(found, torch.cat(each, -1), atol=1e-5)
    assert of_tokens(network, weights) is found


def test_a_token_begins_with_the_same_bits_in_every_pass() -> None:
    """Its value in the first layer follows from the token alone: in prompts of all lengths, and in a step."""
    lm, found = CausalLM(model(attention_bias=True)), []
    for before in (0, 1, 30, 39):
        cache = DynamicCache()
        if before:
            lm(IDS[:, :before], None, IDS[:, :before], cache)
        lm(IDS[:, before:], None if before in (0, 39) else torch.zeros(1, 1, 40 - before, 40), IDS[:, before:], cache)
        found.append(cache.layers[0].values)
    assert all(torch.equal(values, found[0]) for values in found)


def test_a_large_vocabulary_is_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    network = model()
    own = sum(weight.nbytes for weight in network.parameters())
    monkeypatch.setattr(laid_weights, "_MOST_BYTES", own)
    assert of_tokens(network, laid(network)) is None
    monkeypatch.setattr(laid_weights, "_MOST_BYTES", 2 * own + 2**20)
    assert of_tokens(network, laid(network)) is not None


def test_another_epsilon_of_a_norm_counts_from_the_next_question_on() -> None:
    network = model()
    lm = CausalLM(network)
    before = logits(lm)
    network.model.layers[0].input_layernorm.variance_epsilon = 1.0
    assert torch.allclose(logits(lm), plain_logits(network), atol=1e-4)
    assert not torch.allclose(logits(lm), before, atol=1e-4)


def written_in_place(network: Any) -> None:
    with torch.no_grad():
        network.model.layers[0].mlp.up_proj.weight[3, 3] += 1


def merged_by_way_of_data(network: Any) -> None:
    network.model.layers[1].self_attn.v_proj.weight.data += 0.1


def bias_by_way_of_data(network: Any) -> None:
    network.model.layers[0].self_attn.q_proj.bias.data += 1


def row_by_way_of_data(network: Any) -> None:
    network.model.layers[1].mlp.up_proj.weight.data[333] += 5


def column_by_way_of_data(network: Any) -> None:
    network.model.layers[1].mlp.down_proj.weight.data[:, 321] += 5


def number_of_a_bias_by_way_of_data(network: Any) -> None:
    network.model.layers[0].mlp.gate_proj.bias.data[333] += 50


def replaced(network: Any) -> None:
    layer = network.model.layers[0].mlp.down_proj
    layer.weight = torch.nn.Parameter(layer.weight * 2)


def other_layer(network: Any) -> None:
    old = network.model.layers[0].self_attn.o_proj
    network.model.layers[0].self_attn.o_proj = torch.nn.Linear(old.in_features, old.out_features, bias=True)


def layers_swapped(network: Any) -> None:
    network.model.layers[0].mlp, network.model.layers[1].mlp = network.model.layers[1].mlp, network.model.layers[0].mlp


CHANGES = [written_in_place, merged_by_way_of_data, bias_by_way_of_data, replaced, other_layer, layers_swapped]
CHANGES += [row_by_way_of_data, column_by_way_of_data, number_of_a_bias_by_way_of_data]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_of_weights_counts_from_the_next_question_on(change: Callable[[Any], None]) -> None:
    network = model(attention_bias=True, mlp_bias=True, intermediate_size=700)
    lm = CausalLM(network)
    now, before = lm.as_it_is(), logits(lm)
    assert torch.allclose(before, plain_logits(network), atol=1e-4)
    change(network)
    assert torch.allclose(logits(lm), plain_logits(network), atol=1e-4)
    assert not torch.allclose(logits(lm), before, atol=1e-4)
    if change in (written_in_place, merged_by_way_of_data):
        assert torch.equal(logits(now), before)


def every_norm(network: Any) -> None:
    for layer in network.model.layers:
        layer.input_layernorm.weight.data *= 2


def every_embedding(network: Any) -> None:
    network.model.embed_tokens.weight.data *= 2


@pytest.mark.parametrize("change", [merged_by_way_of_data, every_norm, every_embedding], ids=lambda c: c.__name__)
def test_what_was_read_before_a_change_that_torch_does_not_count_is_forgotten(change: Callable[[Any], None]) -> None:
    network = model()
    asked, fresh = local(network), local(network)
    before = opening(asked)
    change(network)
    assert not np.array_equal(opening(asked), before)
    assert np.array_equal(opening(asked), opening(fresh))


def test_an_embedding_that_is_not_a_number_is_no_change() -> None:
    """As one of padding, which nobody asks for."""
    network = model()
    network.model.embed_tokens.weight.data[-1] = torch.nan
    lm = CausalLM(network)
    first, before = lm._as_llama(), lm.fingerprint()
    again = lm._as_llama()
    assert first is not None
    assert again is not None
    assert again[1] is first[1]
    assert lm.fingerprint() == before


def opening(asked: LocalModel) -> Any:
    prompts = prompts_for("short_answer")
    groups = [prompts.isolated.render(context=text, query=QUERY) for text in BENIGN]
    return asked.open_session(groups, prompts.no_retrieval.render(query=QUERY), 4).opening.distributions.groups


def test_a_model_whose_changes_nobody_counts_is_not_laid() -> None:
    with torch.inference_mode():
        network = model()
    assert laid(network).product(network.lm_head, torch.randn(1, 9, network.config.hidden_size), None) is None


def test_large_models_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    network = model()
    monkeypatch.setattr(laid_weights, "_MOST_BYTES", 1000)
    assert laid(network).product(network.lm_head, torch.randn(1, 9, network.config.hidden_size), None) is None


def test_layers_with_and_without_a_bias_are_not_laid_together() -> None:
    network = model(attention_bias=True)
    network.model.layers[0].self_attn.k_proj.bias = None
    assert network.model.layers[0].self_attn not in llama.layers_of(network)
    assert torch.allclose(logits(CausalLM(network)), plain_logits(network), atol=1e-4)
