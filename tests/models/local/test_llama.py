"""The forward pass of untouched Llama models: the numbers of the model's own code, and only where nobody changed it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import DynamicCache  # noqa: E402

from robustrag_integrations.models.local import causal_lm, giving_up, llama  # noqa: E402
from robustrag_integrations.models.local.causal_lm import CausalLM, Reading  # noqa: E402
from robustrag_integrations.models.local.masks import MaskRules  # noqa: E402
from robustrag_integrations.models.local.slab import RowCache  # noqa: E402
from robustrag_integrations.models.local.untouched import is_untouched_llama  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402

SCALED = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 256}


def model(**settings: Any) -> Any:
    return tiny_model("llama", **settings).eval()


def own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal_lm, "is_untouched_llama", lambda model: False)


def differ_by_noise(got: Any, wanted: Any) -> bool:
    """Whether no number is further off than that; one that is none is."""
    return bool((got - wanted).abs().max() <= 2e-5 * max(1.0, float(wanted.abs().max())))


def logits_of(network: Any, *, long: int = 40) -> list[Any]:
    """A prompt, its continuation behind what was read, and a step, with and without masks."""
    lm = CausalLM(network)
    rules, cache = MaskRules.of(lm), DynamicCache()
    ids = torch.arange(3, 3 + 2 * long).view(2, long) % 400
    found = []
    for start, end, masked in ((0, long - 9, False), (long - 9, long - 1, True), (long - 1, long, False)):
        keys = torch.arange(end)[None].expand(2, -1)
        places = keys[:, start:]
        mask = rules.mask(places, keys) if masked else None
        found.append(lm(ids[:, start:end], mask, places, cache, keep=3 if end > start + 2 else 1))
    return [*found, *(t for layer in cache.layers for t in (layer.keys, layer.values))]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_key_value_heads": 4},
        {"attention_bias": True, "mlp_bias": True},
        {"tie_word_embeddings": True},
        {"rope_parameters": SCALED},
        {"head_dim": 24},
    ],
    ids=["shared heads", "own heads", "biases", "tied", "scaled positions", "wide heads"],
)
def test_the_numbers_are_those_of_the_models_own_code(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = model(**settings)
    assert is_untouched_llama(network)
    ours = logits_of(network)
    own_code(monkeypatch)
    for got, wanted in zip(ours, logits_of(network), strict=True):
        assert got.shape == wanted.shape
        assert differ_by_noise(got, wanted)


@pytest.mark.parametrize("filled", [34, 48])
@pytest.mark.parametrize("keep", [1, 3, 33, torch.tensor([0, 7])], ids=["last", "some", "all", "which"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_prompt_that_is_filled_up_has_its_own_numbers(
    filled: int, keep: Any, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fills it up is neither seen nor kept: here not even a number."""
    network, ids = model(), 1 + torch.arange(33)[None]
    with torch.no_grad():
        network.model.embed_tokens.weight[0] = torch.nan
    lm, rules, places = CausalLM(network), MaskRules.of(CausalLM(network)), torch.arange(33)[None]
    mask = rules.mask(places, places) if masked else None
    monkeypatch.setattr(llama, "agrees_with_its_own", lambda network: True)
    monkeypatch.setattr(llama, "whole_tokens", lambda tokens, numbers: filled)
    ours, wanted = DynamicCache(), DynamicCache()
    got = lm(ids, mask, places, ours, keep=keep)
    own_code(monkeypatch)
    assert differ_by_noise(got, lm(ids, mask, places, wanted, keep=keep))
    for one, other in zip(ours.layers, wanted.layers, strict=True):
        assert differ_by_noise(one.keys, other.keys)
        assert differ_by_noise(one.values, other.values)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_norms_are_those_of_torch(size: float) -> None:
    module = model().model.norm
    torch.nn.init.normal_(module.weight)
    hidden = size * torch.randn(3, 5, 64)
    wanted = torch.nn.functional.rms_norm(hidden, module.weight.shape, module.weight, module.variance_epsilon)
    with torch.inference_mode():
        assert torch.allclose(llama.Norm.of(module).scaled(hidden), wanted, rtol=1e-5, atol=1e-6)


def test_queries_of_the_last_layer_are_those_of_the_columns_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    network, ids, seen = model(), torch.arange(12)[None], {}
    of = llama.Products.of

    def counted(self: llama.Products, layers: llama.Linears, hidden: Any) -> Any:
        seen[layers.asking] = hidden.shape[1]
        return of(self, layers, hidden)

    monkeypatch.setattr(llama.Products, "of", counted)
    lm = CausalLM(network).as_it_is()  # its own code is asked here, whether ours agrees
    seen.clear()
    lm(ids, None, ids, DynamicCache(), keep=1)
    last = network.model.layers[-1].self_attn
    assert [seen.get(part) for part in (last, last.q_proj, last.k_proj, last.o_proj)] == [None, 1, 12, 1]


def test_logits_can_be_asked_of_some_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    network, ids = model(), torch.arange(12)[None]
    columns = torch.tensor([2, 7])
    lm = CausalLM(network)
    ours = lm(ids, None, ids, DynamicCache(), keep=columns)
    own_code(monkeypatch)
    assert torch.allclose(ours, lm(ids, None, ids, DynamicCache(), keep=columns), atol=1e-5)


def hook(network: Any) -> None:
    network.model.layers[1].mlp.register_forward_hook(lambda module, args, output: output * 2)


def hook_before(network: Any) -> None:
    network.model.norm.register_forward_pre_hook(lambda module, args: (args[0] * 2,))


def other_forward(network: Any) -> None:
    layer = network.model.layers[0].self_attn.o_proj
    layer.forward = lambda hidden: torch.nn.functional.linear(hidden, layer.weight) * 2


def other_layer(network: Any) -> None:
    class Doubled(torch.nn.Linear):  # type: ignore[misc]  # untyped library
        def forward(self, hidden: Any) -> Any:
            return super().forward(hidden) * 2

    old = network.model.layers[0].mlp.up_proj
    network.model.layers[0].mlp.up_proj = new = Doubled(old.in_features, old.out_features, bias=False)
    new.weight = old.weight


def parametrized(network: Any) -> None:
    class Twice(torch.nn.Module):  # type: ignore[misc]  # untyped library
        def forward(self, weight: Any) -> Any:
            return weight * 2

    torch.nn.utils.parametrize.register_parametrization(network.model.layers[0].mlp.up_proj, "weight", Twice())


def other_activation(network: Any) -> None:
    network.model.layers[0].mlp.act_fn = torch.nn.ReLU()


def own_attention(network: Any) -> None:
    network.set_attn_implementation("eager")


def half(network: Any) -> None:
    network.model.layers[1].to(torch.bfloat16)


def compiled(network: Any) -> None:
    network.model.layers[0].compile(backend="eager")


def activation_hook(network: Any) -> None:
    network.model.layers[0].mlp.act_fn.register_forward_hook(lambda module, args, output: output * 2)


def activation_of_ones_own(network: Any) -> None:
    class SiLU(torch.nn.Module):  # type: ignore[misc]  # untyped library
        def forward(self, numbers: Any) -> Any:
            return numbers.relu()

    network.model.layers[0].mlp.act_fn = SiLU()


def seeing_what_follows(network: Any) -> None:
    network.model.layers[0].self_attn.is_causal = False


def short_embeddings(network: Any) -> None:
    network.model.embed_tokens.max_norm = 1.0


def quantised(network: Any) -> None:
    network.lm_head = torch.ao.nn.quantized.dynamic.Linear(64, 400)


def no_layers(network: Any) -> None:
    network.config.num_hidden_layers = 0


def dropout_in_a_layer(network: Any) -> None:
    attention = network.model.layers[0].self_attn.train()
    attention.attention_dropout = 0.5


def weight_that_is_no_parameter(network: Any) -> None:
    layer = network.model.layers[0].mlp.up_proj
    weight = layer._parameters.pop("weight").detach()
    layer.weight = weight * 2


def bias_that_is_no_parameter(network: Any) -> None:
    layer = network.model.layers[0].mlp.up_proj
    del layer._parameters["bias"]
    layer.bias = torch.ones(len(layer.weight))


CHANGES = [hook, hook_before, other_forward, other_layer, parametrized, other_activation, own_attention, half, compiled]
CHANGES += [activation_hook, activation_of_ones_own, seeing_what_follows, short_embeddings, quantised, no_layers]
CHANGES += [dropout_in_a_layer, weight_that_is_no_parameter, bias_that_is_no_parameter]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_model_that_somebody_changed_runs_its_own_code(change: Callable[[Any], None]) -> None:
    network = model()
    assert is_untouched_llama(network)
    change(network)
    assert not is_untouched_llama(network)


def test_a_change_between_two_calls_counts() -> None:
    network = model()
    lm, ids = CausalLM(network), torch.arange(12)[None]
    before = lm(ids, None, ids, DynamicCache())
    handle = network.lm_head.register_forward_hook(lambda module, args, output: output * 2)
    assert torch.allclose(lm(ids, None, ids, DynamicCache()), 2 * before, atol=1e-4)
    handle.remove()
    assert torch.equal(lm(ids, None, ids, DynamicCache()), before)


def test_the_layers_are_those_of_the_inner_configuration() -> None:
    """As in the model's own code."""
    network, ids = model(), torch.arange(12)[None]
    lm = CausalLM(network)
    wanted = lm(ids, None, ids, DynamicCache())
    network.config = copy.deepcopy(network.config)
    network.config.num_hidden_layers = 1
    assert torch.equal(lm(ids, None, ids, DynamicCache()), wanted)
    assert torch.allclose(network(input_ids=ids).logits[:, -1:], wanted, atol=1e-5)


def test_hooks_of_every_module_are_kept() -> None:
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *args: None)
    try:
        assert not is_untouched_llama(model())
    finally:
        handle.remove()


def test_a_subclass_of_the_users_runs_its_own_code() -> None:
    from transformers import LlamaForCausalLM

    mine = type("LlamaForCausalLM", (LlamaForCausalLM,), {"__module__": "mine"})
    network = model()
    network.__class__ = mine
    assert not is_untouched_llama(network)


def test_other_architectures_run_their_own_code() -> None:
    for architecture in ("mistral", "qwen3", "gpt2"):
        assert not is_untouched_llama(tiny_model(architecture))


def test_a_release_of_transformers_that_computes_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama.modeling_llama import LlamaMLP

    network, ids = model(), torch.arange(12)[None]
    assert llama.agrees_with_its_own(network)
    monkeypatch.setattr(LlamaMLP, "forward", lambda self, x: self.down_proj(self.act_fn(self.gate_proj(x))))
    wanted = network(input_ids=ids).logits[:, -1:]
    assert not llama.agrees_with_its_own(network)
    assert torch.allclose(CausalLM(network)(ids, None, ids, DynamicCache()), wanted, atol=1e-5)


@pytest.mark.parametrize("part", ["LlamaForCausalLM", "LlamaModel", "LlamaDecoderLayer", "LlamaAttention", "LlamaMLP"])
def test_other_code_in_a_class_counts_from_the_next_call(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama

    network = model()
    assert is_untouched_llama(network)
    monkeypatch.setattr(getattr(modeling_llama, part), "forward", lambda self, *args, **kwargs: None)
    assert not is_untouched_llama(network)


def test_a_model_is_compared_anew_once_what_was_found_out_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama

    network, ids = model(), torch.arange(12)[None]
    lm, turned = CausalLM(network), modeling_llama.apply_rotary_pos_emb
    lm(ids, None, ids, DynamicCache())
    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", lambda q, k, *turn: turned(2 * q, k, *turn))
    lm.forget()
    wanted = network(input_ids=ids).logits[:, -1:]
    assert torch.allclose(lm(ids, None, ids, DynamicCache()), wanted, atol=1e-5)


def begun(lm: CausalLM, *, prefix: int = 5) -> list[tuple[Reading, RowCache]]:
    """Prompts of many lengths, one with tokens that are scored behind it, each behind a prefix of its own."""
    rules, found = MaskRules.of(lm), []
    for lengths, keep in ((1, 1), (9, 1), (33, 1), (47, 3)):
        cache = RowCache(prefix + lengths)
        keys = torch.arange(prefix + lengths)[None]
        lm((keys[:, :prefix] * 7 + lengths) % 400, None, keys[:, :prefix], cache)
        ids, places = (keys[:, prefix:] * 11 + lengths) % 400, keys[:, prefix:]
        found.append((Reading(ids, rules.mask(places, keys), places, cache, keep), cache))
    return found


@pytest.mark.parametrize("own", [False, True], ids=["operation by operation", "its own code"])
def test_prompts_that_are_read_side_by_side_have_the_bits_of_each_by_itself(
    own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own:
        own_code(monkeypatch)
    lm = CausalLM(model(attention_bias=True))
    apart, together = begun(lm), begun(lm)
    expected = [lm.each([one])[0] for one, _ in apart]
    assert all(map(torch.equal, lm.each([one for one, _ in together]), expected))
    for (_, one), (_, other) in zip(apart, together, strict=True):
        kept = zip(one.pairs(), other.pairs(), strict=True)
        assert all(torch.equal(a, b) for pairs in kept for a, b in zip(*pairs, strict=True))


def test_reading_side_by_side_stops_once_nobody_waits_and_a_step_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step may be taken for other questions, too."""
    lm = CausalLM(model())
    readings = [one for one, _ in begun(lm)]
    lm.each(readings[:1])
    nobody_waits = threading.Event()
    nobody_waits.set()
    abandoned = giving_up._ABANDONED.set(nobody_waits)
    try:
        lm.each(readings[1:2])
        with pytest.raises(giving_up.GivenUpError):
            lm.each(readings[2:])
        own_code(monkeypatch)
        with pytest.raises(giving_up.GivenUpError):
            lm.each(readings[2:])
    finally:
        giving_up._ABANDONED.reset(abandoned)


@pytest.mark.parametrize("width", [8, 24, 31, 32, 40, 64, 100, 344])
def test_gates_have_the_same_bits_in_every_row_of_a_pass(width: int) -> None:
    chance = torch.Generator().manual_seed(width)
    weights = [torch.randn(width, 48, generator=chance) for _ in range(2)]
    layers = llama.Linears(None, tuple((weight, None) for weight in weights))
    one = torch.randn(1, 1, 48, generator=chance)

    def alone_each(hidden: Any, weight: Any, bias: Any) -> Any:
        return torch.cat([torch.nn.functional.linear(row, weight) for row in hidden.flatten(0, 1).split(1)]).view(
            *hidden.shape[:2], -1
        )

    for shape in ((7, 1, 48), (1, 9, 48)):
        gate, up = llama.Products(alone_each).apart(layers, one.expand(shape))
        assert gate.shape == up.shape == (*shape[:2], width)
        assert torch.equal(gate, alone_each(one.expand(shape), weights[0], None))
        for gated in torch.nn.functional.silu(gate).mul_(up).flatten(0, 1):
            assert torch.equal(gated, (torch.nn.functional.silu(gate[0, 0]) * up[0, 0]))
